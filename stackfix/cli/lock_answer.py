"""Keeps the answer of a `stackfix lock` with all that it rests on, for `early` to give it again.

What was read is noted in `Seen` while it is read. An answer is not kept where it rests on more: on the machine
(`auto`), on a folder of wheels, on a source that could not be reached, on a file that was changed meanwhile.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from stackfix.cli import early, early_state
from stackfix.cli.early import Asked
from stackfix.cli.early_state import Changed, digest_of
from stackfix.cli.early_words import ELSEWHERE

if TYPE_CHECKING:
    from stackfix.cli.common import CommonOptions
    from stackfix.cli.lock import Outcome, Shown
    from stackfix.cli.options import LockOptions
    from stackfix.cli.seen import Seen

MOST = 100              # answers in the folder; the oldest go first
TICK = 0.05             # seconds by which the clock of a file system may be behind
STANDARD = str(Path(os.__file__).parent)
EXPANDED = re.compile(rb"\$\{?([A-Za-z_][A-Za-z0-9_]*)")
Row = tuple[object, ...]


class Keeping:
    """What a run finds before it begins; then its answer."""

    def __init__(self, words: object, folders: Sequence[str]) -> None:
        """`words`: the command line, None where nobody says which. `folders`: where the locks lie."""
        self._asked: Asked | None = None
        if not isinstance(words, tuple):
            return
        with suppress(Changed, OSError):
            asked = Asked(words)
            names = [ELSEWHERE if folder == asked.directory else folder for folder in folders]
            for name in (asked.primary, *names):
                asked.state(name)
            self._asked, self._names = asked, names

    def keep(
        self, stacks: Sequence[LockOptions], outcomes: Sequence[Outcome], shown: Sequence[Shown], common: CommonOptions,
        *, status: int,
    ) -> None:
        """Keeps the answer where it can be given again. Never raises for what cannot be written."""
        asked = self._asked
        if asked is None or any(outcome.proof is not None for outcome in outcomes):
            return      # a proof rests on the tables of wheels as well
        if not can_be_kept(stacks, common) or Path(asked.cache) != common.cache_dir:
            return
        try:
            content = bytearray()
            matrix = {path for options in stacks for path in matrix_files(options)}
            matrix.update(path for folder in common.seen.folders for path in tree(folder))
            rows: list[Row] = [("status", status), *said_rows(shown, self._names)]
            rows += world_rows(asked, common.seen, matrix, offline=common.offline)
            for name, outcome in zip(self._names, outcomes, strict=True):
                rows += file_rows(asked, name, outcome, content)
        except (Changed, OSError, ValueError):      # a name that is no text
            return
        with suppress(OSError, ValueError):
            put(asked.path(), early.body_of(rows), bytes(content))


def can_be_kept(stacks: Sequence[LockOptions], common: CommonOptions) -> bool:
    """Whether nothing stands against it that is known beforehand."""
    if common.verbose or common.seen.unkept is not None:
        return False
    return not any("auto" in (options.driver, *options.gpu_archs) or options.upgrade_packages for options in stacks)


def matrix_files(options: LockOptions) -> Iterator[str]:
    """The files and folders of the matrix that a stack is chosen from."""
    from stackfix.matrix.toml_files import matrix_directory

    for folder in (str(matrix_directory()), options.matrix_directory):
        yield from tree(folder) if folder is not None else ()


def tree(folder: str) -> Iterator[str]:
    """A folder, and all files and folders below it."""
    for above, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__"]
        yield above
        yield from (f"{above}/{name}" for name in files)


def said_rows(shown: Sequence[Shown], names: Sequence[str]) -> Iterator[Row]:
    """What was shown, in order."""
    for line in shown:
        if line.file is not None and len(set(names)) == 1 and names[0] == ELSEWHERE:
            yield "said", "out", ELSEWHERE, line.file
        else:
            yield "said", "err" if line.err else "out", "", line.text


def world_rows(asked: Asked, seen: Seen, matrix: set[str], *, offline: bool) -> Iterator[Row]:
    """What the answer rests on. Raises Changed where something of it changed since the run began."""
    variables: set[str] = set()
    for path, there in seen.texts.items():
        yield "text", path, early_state.file_digest(path) if there else "-"
        if there:
            refuse_new(path, seen.began)
            variables.update(name.decode() for name in EXPANDED.findall(early_state.read_bytes(path)))
        elif Path(path).exists():
            raise Changed
    yield "variables", " ".join(sorted(variables)), early_state.variables_digest(variables, asked.environ)
    for name in asked.folders:
        yield "folder", name, early_state.state_text(asked.state(name))
    program = sorted({*module_files(), *matrix})
    stats = list(map(os.stat, program))
    if max(max(one.st_mtime, one.st_ctime) for one in stats) >= seen.began - TICK:
        raise Changed
    entries = sorted(answer.entry for answer in seen.answers if answer.entry is not None)
    yield "signature", early_state.signature_of(stats)
    yield "same", *program
    yield "pages", early_state.signature_of(map(os.stat, entries)), *entries
    for answer in seen.answers:
        yield ("answer", answer.url, answer.status, answer.until, answer.etag or "", answer.packed or "", answer.accept,
               answer.entry or "", answer.final or "", answer.kind)
    yield from (("index", base) for base in seen.indexes)
    untils = [answer.until for answer in seen.answers]
    yield "fresh", seen.began, float("inf") if offline else min(untils, default=float("inf"))


def refuse_new(path: str, began: float) -> None:
    """Raises Changed for a file that was changed when the run had begun: which text was read is not known."""
    stat = Path(path).stat()
    if max(stat.st_mtime, stat.st_ctime) >= began - TICK:
        raise Changed


def module_files() -> Iterator[str]:
    """The files of all loaded modules that do not come with Python itself."""
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if path and (not path.startswith(STANDARD) or "site-packages" in path):
            yield path if path.startswith("/") else str(Path(path).absolute())


def file_rows(asked: Asked, name: str, outcome: Outcome, content: bytearray) -> Iterator[Row]:
    """The files that were written, their bytes added to `content`. Raises Changed for one that would not be seen."""
    if outcome.differences is not None:
        return
    written: Mapping[str, bytes] = {file.path: file.text.encode() for file in outcome.files}
    for path, text in written.items():
        if not early_state.is_lock_name(path):
            raise Changed
        if asked.directory is not None and name == ELSEWHERE and asked.directory.encode() in text:
            raise Changed           # what is written says where: in another folder it would be another text
        yield "write", name, path, digest_of(text), len(content), len(text)
        content += text
    for path in asked.state(name):
        if path and path not in written and not (Path(asked.place(name)) / path).exists():
            yield "remove", name, path


def put(path: str, answer: bytes, files: bytes) -> None:
    """Both parts in their places, and the oldest answers removed."""
    folder = Path(path).parent
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not early_state.is_ours(str(folder)):
        return          # what others can write is never given again, and a link may lead to what is no answer
    for place, content in ((f"{path}.files", files), (path, answer)):
        early.put(place, content)
    kept = sorted(folder.iterdir(), key=lambda one: one.stat().st_mtime, reverse=True)
    for old in kept[2 * MOST:]:
        old.unlink(missing_ok=True)
