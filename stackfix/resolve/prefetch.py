"""Ask for what will be needed before it is needed.

First the pages of the whole expected closure at once, then the metadata of the candidate that would be picked from each
page as it arrives, then what this metadata names.

Nothing here decides. A wrong guess costs a request and no answer: the solver asks for what it needs in any case. It
runs inside the index's own threads, so it never waits for an answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from threading import RLock

from stackfix.matrix import query
from stackfix.matrix.records import TorchBuild
from stackfix.nightly import is_nightly_path
from stackfix.resolve.against import companions_may_fit, expected_stack
from stackfix.resolve.evidence import Evidence
from stackfix.resolve.needs import Candidate, FromFile, FromStack, Need
from stackfix.resolve.nightly_family import comes_with_nightly
from stackfix.resolve.outside import matrix_exclusion
from stackfix.resolve.pep508 import admits, lines_of_extra
from stackfix.resolve.problem import MAX_SDISTS, needs_of
from stackfix.resolve.question import FLASH_ATTN, TORCH, Question
from stackfix.resolve.records import ProjectPage, Target, Watchable
from stackfix.resolve.roots import preferred_versions, torch_need
from stackfix.resolve.stack import Stack
from stackfix.resolve.torch_family import FAMILY, torch_path
from stackfix.sources.errors import NoUploadTimes
from stackfix.sources.records import CoreMetadata, IndexFile

_SMALL = 2 * 1024 * 1024        # of an sdist that is read whole though nobody asked for it yet
_MOST_EXTRAS = 100      # of one project that are read ahead for
_GUESS = FromStack(part="guess", source="prefetch")


class Prefetch:
    """One decision's expectation, kept up to date by what arrives."""

    def __init__(self, evidence: Evidence, question: Question) -> None:
        self._evidence, self._question = evidence, question
        self._lock = RLock()
        self._walks: list[_Walk] = []
        self._asked: set[str] = set()
        self._stack: Stack | None = None
        self._arrived: dict[str, CoreMetadata] = {}     # by the file's address

    def start(self) -> None:
        """Asks for the pages of the expected closure, and follows what arrives."""
        stack = expected_stack(self._evidence, self._question)
        names = [TORCH, *(line.name for line in self._question.lines if "@" not in line.requirement.text)]
        if stack is not None:
            self._ask_torch_index(stack, names)
            self._stack, self._walks = stack, self._walks_of(stack)
            self._evidence.on_stack = self.follow
            if isinstance(self._evidence.index, Watchable):
                self._evidence.index.watch(on_page=self._on_page, on_metadata=self._on_metadata)
        nightly = self._question.nightly is not None
        expected = [name for walk in self._walks for name in walk.needs if not (nightly and comes_with_nightly(name))]
        self._ask((*names, *expected, *query.closure_hint(self._evidence.matrix, tuple(dict.fromkeys(names)))))

    def follow(self, stack: Stack) -> None:
        """Expects the closures of another stack than before: the search has come to it."""
        if self._stack is not None and stack.version == self._stack.version:
            return
        if not companions_may_fit(self._evidence, self._question, stack):
            return                      # it is tried, and most likely in vain
        with self._lock:
            self._stack, self._walks = stack, self._walks_of(stack)
            names = dict.fromkeys(name for walk in self._walks for name in walk.needs)
            self._ask(names)
            self._take([(walk, file) for walk in self._walks for name in names for file in walk.pick(name)])

    def _walks_of(self, stack: Stack) -> list[_Walk]:
        """The expected closure of each target."""
        request = self._question.request
        targets = self._question.targets(request.pythons or (request.default_python,))
        return [_Walk(self._evidence, self._question, stack, target) for target in targets
                if target.place in stack.builds]

    def _take(self, picked: list[tuple[_Walk, IndexFile]]) -> None:
        """Asks for the metadata of files, and goes on from those whose metadata came before."""
        new: dict[IndexFile, None] = {}
        while picked:
            walk, file = picked.pop()
            metadata = self._arrived.get(file.url)
            if metadata is None:
                new[file] = None
                continue
            names = walk.learn(file, metadata)
            self._ask(names)
            picked += [(walk, other) for name in names for other in walk.pick(name)]
        if new:
            self._evidence.index.prefetch_metadata(tuple(new))

    def _ask_torch_index(self, stack: Stack, names: Iterable[str]) -> None:
        """Asks for the pages of what a variant of torch comes with."""
        wheels, family = self._evidence.torch_wheels, tuple(
            name for name in dict.fromkeys(names) if name in FAMILY and self._evidence.pinned_by(name) is None)
        for path in {torch_path(build) for build in stack.builds.values()}:
            if wheels is not None and path is not None:
                wheels.prefetch(path, family)

    def _ask(self, names: Iterable[str]) -> None:
        """Asks for pages that were not asked for yet. flash-attn wheels are on no index."""
        new = tuple(name for name in dict.fromkeys(names) if name not in self._asked and name != FLASH_ATTN)
        self._asked.update(new)
        if new:
            self._evidence.index.prefetch_pages(new)

    def _on_page(self, page: ProjectPage) -> None:
        self._evidence.arrived(page)
        with self._lock:
            self._take([(walk, file) for walk in self._walks for file in walk.pick(page.name)])

    def _on_metadata(self, file: IndexFile, metadata: CoreMetadata) -> None:
        with self._lock:
            self._arrived[file.url] = metadata
            picked: list[tuple[_Walk, IndexFile]] = []
            for walk in self._walks:
                names = walk.learn(file, metadata)
                self._ask(names)
                picked += [(walk, other) for name in names for other in walk.pick(name)]
            self._take(picked)


class _Walk:
    """The expected closure of one target: greedy, each project at the best version that is known to be admitted."""

    def __init__(self, evidence: Evidence, question: Question, stack: Stack, target: Target) -> None:
        self._evidence, self._target = evidence, target
        self._build: TorchBuild = stack.builds[target.place]
        self._fixed = {TORCH: stack.version}
        self._preferred = preferred_versions(evidence, question, self._build)
        self.needs: dict[str, list[Need]] = {}
        self._known: set[tuple[str, str, Candidate | None]] = set()
        self._extras: dict[str, set[str]] = {}
        self._picked: dict[str, Candidate] = {}
        self._metadata: dict[str, CoreMetadata] = {}
        self._sdists: dict[str, list[IndexFile]] = {}   # that come next, and are no choice before they are read
        view = evidence.view(target)
        self._expect(need for line in question.lines for need in line.needs(view) if need.url is None)
        self._expect([torch_need(stack, self._build)])
        self._expect(
            need for line in self._build.requires if view.applies(line, None) for need in needs_of(line, _GUESS)
        )

    def _expect(self, needs: Iterable[Need]) -> list[str]:
        """Takes needs in; the projects about which something new is known."""
        names: dict[str, None] = {}
        for need in needs:
            if need.extra is not None and len(extras := self._extras.setdefault(need.name, set())) < _MOST_EXTRAS:
                extras.add(need.extra)
            key = (need.name, need.text, need.parent)
            if key not in self._known:
                self._known.add(key)
                self.needs.setdefault(need.name, []).append(need)
                names[need.name] = None
        return list(names)

    def pick(self, name: str) -> Iterator[IndexFile]:
        """The file whose metadata is worth reading now, if the page is here and no file of the project was as good.

        With it sdists that come next: whether they can be chosen is asked of each, one after another.
        """
        if not self._evidence.has_page(name):
            return
        candidate = self._best(name)
        if candidate is not None and self._picked.get(name) is not candidate:
            self._picked[name] = candidate
            yield candidate.files[0]
            yield from self._sdists.pop(name, ())

    def _best(self, name: str) -> Candidate | None:
        path = torch_path(self._build)
        if path is not None and (name in FAMILY or (is_nightly_path(path) and comes_with_nightly(name))):
            return None                 # it comes from the torch index: what is on this page is another variant
        needs = [need for need in self.needs.get(name, ()) if self._still_holds(need)]
        before = self._picked.get(name)
        if before is not None and all(admits(need.specifier, before.version) for need in needs):
            return before
        project = self._evidence.project(name, self._target)
        matrix = self._evidence.matrix
        tied = name in self._evidence.tied_to_torch
        candidates = project.candidates(needs, self._preferred.get(name, ()))
        try:
            for candidate in candidates:
                unknown = tied and query.companion(matrix, name, candidate.text) is None
                if not unknown and matrix_exclusion(matrix, candidate, self._build, self._fixed) is None:
                    self._look_further(name, candidates)
                    return candidate
        except NoUploadTimes:
            return None                 # nobody needs it yet
        return None

    def _look_further(self, name: str, candidates: Iterator[Candidate]) -> None:
        """The search looks at the next ones, too: here it is done while the page's text is at hand."""
        after = [found.files[0] for found in islice(candidates, 1)]
        if after and not after[0].is_wheel:
            after += [found.files[0] for found in islice(candidates, MAX_SDISTS - 1)]
            self._sdists[name] = [file for file in after if (file.size or _SMALL) < _SMALL]

    def _still_holds(self, need: Need) -> bool:
        """Whether whoever needs it is still expected to be in the closure."""
        return need.parent is None or self._picked.get(need.parent.name) is need.parent

    def learn(self, file: IndexFile, metadata: CoreMetadata) -> list[str]:
        """Takes the metadata of a picked file in; the projects about which something new is known."""
        candidate = self._picked.get(metadata.name)
        if candidate is None or candidate.files[0].url != file.url:
            return []
        self._metadata[metadata.name] = metadata
        names = self._follow(candidate, metadata)
        for name in names:      # an extra that is asked for only now adds to what its project was known to need
            known, picked = self._metadata.get(name), self._picked.get(name)
            if known is not None and picked is not None and self._extras.get(name):
                names.extend(more for more in self._follow(picked, known) if more not in names)
        return names

    def _follow(self, candidate: Candidate, metadata: CoreMetadata) -> list[str]:
        view = self._evidence.view(self._target)
        origin = FromFile(parent=candidate)
        names: dict[str, None] = {}
        for extra in (None, *sorted(self._extras.get(candidate.name, ()))):
            lines = metadata.requires_dist if extra is None else lines_of_extra(metadata.requires_dist, extra)
            holding = (line for line in lines if view.applies(line, extra))
            names.update(dict.fromkeys(self._expect(need for line in holding for need in needs_of(line, origin))))
        return list(names)
