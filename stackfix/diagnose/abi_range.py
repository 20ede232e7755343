"""Which torch an extension was built for: what the almanac tells by all the symbols that its files ask of torch."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from stackfix.diagnose.abi_groups import Extension
from stackfix.diagnose.faults_symbols import is_torch_library
from stackfix.diagnose.finding_records import BuiltFor
from stackfix.diagnose.installed_torch import InstalledTorch, installed_torch, numbers, platform_of
from stackfix.diagnose.records import LoadedObject, LoadOutcome, MissingSymbol
from stackfix.diagnose.situation import View
from stackfix.inspect.records import BadElf, ElfObject, FileAt

if TYPE_CHECKING:
    from stackfix.abi.records import BookRelease, CompiledFile, TorchRange

Seen: TypeAlias = tuple[LoadedObject, LoadOutcome]     # a file, and an opening that mapped it or tried to
MOST_PATCHES = 10                   # torch never had that many of one minor
READ_PLATFORM = "linux-64"          # of the wheels that the almanac was made of


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The almanac's answer about one extension."""

    range: TorchRange
    releases: tuple[BookRelease, ...]   # all that were read, oldest first
    newer: bool                     # the installed torch is newer than all of them: of it nothing is known
    private: tuple[str, ...]        # names that the installed torch has, and no release: left out of the range

    @property
    def minors(self) -> tuple[str, ...]:
        """Those whose wheels it can load with; where the string ABI rules all of them out, those of any build."""
        return self.range.index_minors or self.range.minors

    def has(self, torch: InstalledTorch) -> bool:
        """Whether the release that is installed, of some build, has all names."""
        return minor_of(torch) in self.range.minors or torch.release in self.range.patches

    @property
    def known_to_load(self) -> tuple[str, ...]:
        """Releases that may have all names: each patch of the minors that do, but those known to lack one."""
        every = (*(f"{minor}.{patch}" for minor in self.range.minors for patch in range(MOST_PATCHES)),
                 *self.range.patches)
        return tuple(filter(self.range.loads, every))

    def record(self) -> BuiltFor:
        """For a plan of repairs."""
        return BuiltFor(torch=self.range.minors, string_abi=self.range.string_abi, index=self.range.index_minors,
                        unknown=tuple(each.name for each in self.range.unknown))

    def span(self, minors: Sequence[str]) -> str:
        """Minors in words: "2.1 to 2.2", "2.13 or newer", "2.1 or older"."""
        every = [each.minor for each in self.releases]
        return ", ".join(run_text(run, every, ends=self.newer) for run in runs(minors, every))


def told_of_torch(view: View, extension: Extension) -> Told | None:
    """What the almanac tells of an extension's files that fail."""
    found = [(each.requester, each.opening.outcome) for each in extension.sightings if each.requester is not None]
    told, first = told_of(view, found), extension.first.requester
    if told is None or told.range.minors or told.range.patches or told.range.unknown or first is None:
        return told
    # files for several releases side by side: the one that fails first stands for them
    return told_of(view, [each for each in found if each[0].identity == first.identity])


def told_of_working(view: View, project: str) -> Told | None:
    """What the almanac tells of the files of a project that can be opened; None too where none is opened."""
    found = [(each.outcome.attempted.objects[number], each.outcome) for each in view.openings
             if each.project == project and not each.outcome.failures for number in each.outcome.loaded]
    owned = [(object_, outcome) for object_, outcome in found
             if any(each.name == project for each in view.owners(object_.path, object_.real_path))]
    return told_of(view, owned)


def told_of(view: View, found: Sequence[Seen]) -> Told | None:
    """What the almanac tells; None where the files ask nothing of torch, or are for another processor than was read."""
    if platform_of(view) != READ_PLATFORM or not found:
        return None
    from stackfix.abi.torch_range import torch_range

    book, files = view.books.torch, tuple(compiled_files(view, found))
    range_ = torch_range(files, book)
    if range_ is None or not range_.asked:
        return None
    missing = {each.name for _, outcome in found for each in outcome.failures if isinstance(each, MissingSymbol)}
    private = tuple(each.name for each in range_.unknown if each.name not in missing)
    if private:
        range_ = torch_range([without(each, private) for each in files], book) or range_
    torch = installed_torch(view)
    newer = torch is not None and numbers(torch.release)[:2] > numbers(book.releases[-1].minor)
    return Told(range=range_, releases=book.releases, newer=newer, private=private)


def without(file: CompiledFile, names: Collection[str]) -> CompiledFile:
    """The file as if it did not ask for some names."""
    return replace(file, undefined=tuple(each for each in file.undefined if each.name not in names))


def compiled_files(view: View, found: Sequence[Seen]) -> Iterator[CompiledFile]:
    """Each file once, with the symbols that it leaves to torch and to others."""
    from stackfix.abi.records import CompiledFile

    for object_ in {each.identity: each for each, _ in found}.values():
        at = view.files.at(object_.path)
        if not isinstance(at, FileAt) or not isinstance(at.elf, ElfObject):
            continue
        given = {name for each, outcome in found if each.identity == object_.identity
                 for name in given_to(each, outcome)}
        try:
            undefined = view.files.symbols(at).undefined()
        except BadElf:      # told elsewhere
            continue
        left = tuple(symbol for symbol in undefined if symbol.name not in given)
        yield CompiledFile(path=object_.path, elf=at.elf, undefined=left, supplied=len(undefined) - len(left),
                           archs=None)


def given_to(object_: LoadedObject, outcome: LoadOutcome) -> Iterator[str]:
    """Names that a file gets of another library than torch's: of one of its own package as a rule."""
    objects = outcome.attempted.objects
    for bound in outcome.bound:
        if objects[bound.requester].identity == object_.identity:
            for symbol, provider in zip(bound.symbols, bound.providers, strict=True):
                if provider is not None and not is_torch_library(objects[provider].elf.soname or ""):
                    yield symbol.name


def runs(minors: Sequence[str], every: Sequence[str]) -> Iterator[list[str]]:
    """Minors that follow each other, together."""
    run = list[str]()
    for each in every:
        if each in minors:
            run.append(each)
        elif run:
            yield run
            run = []
    if run:
        yield run


def run_text(run: Sequence[str], every: Sequence[str], *, ends: bool) -> str:
    """One run in words. `ends`: one that reaches the newest release that was read is known not to go on."""
    first, last = run[0], run[-1]
    if len(run) < len(every) and last == every[-1] and not ends:
        return f"{first} or newer"
    if 1 < len(run) < len(every) and first == every[0]:
        return f"{last} or older"
    return first if first == last else f"{first} to {last}"


def minor_of(torch: InstalledTorch) -> str:
    """"2.3" of torch 2.3.1+cu121."""
    return ".".join(map(str, numbers(torch.release)[:2]))
