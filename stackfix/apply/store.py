"""The transactions of a prefix: `.stackfix/0001` and so on, each with its journal, what it kept and what it brings."""

from __future__ import annotations

import re
import secrets
import stat
from dataclasses import dataclass

from stackfix.apply import syscalls
from stackfix.apply.errors import CannotWrite
from stackfix.apply.journal import NAME as JOURNAL
from stackfix.apply.journal import damaged, read_journal
from stackfix.apply.journal_records import Begin, Committed, Doing, Expanded, Line, Move, Staged, Undoing
from stackfix.apply.lock import STORE
from stackfix.apply.moves import remove, sync_folders
from stackfix.apply.records import Kept, Remains
from stackfix.apply.tree import Tree, join

NUMBER = re.compile(r"[0-9]{4,9}")
KEPT, NEW = "kept", "new"       # in a transaction's folder
TRASH = "trash-"                # a transaction that is over, while its folder is deleted
CHANGED = "changed-"            # what a forced undo found changed; stays until somebody deletes it


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One transaction as its journal tells."""

    number: int
    home: str                       # its folder, relative to the prefix
    lines: tuple[Line, ...]

    @property
    def begin(self) -> Begin | None:
        return next((line for line in self.lines if isinstance(line, Begin)), None)

    @property
    def staged(self) -> bool:
        return any(isinstance(line, Staged) for line in self.lines)

    @property
    def doings(self) -> tuple[Doing, ...]:
        return tuple(line for line in self.lines if isinstance(line, Doing))

    @property
    def moves(self) -> tuple[Move, ...]:
        """All moves that were intended, in order."""
        return tuple(each for doing in self.doings for each in doing.moves)

    @property
    def expanded(self) -> frozenset[str]:
        """The stores of folders that were moved name by name."""
        return frozenset(line.store for line in self.lines if isinstance(line, Expanded))

    @property
    def undoing(self) -> Undoing | None:
        return next((line for line in reversed(self.lines) if isinstance(line, Undoing)), None)

    @property
    def committed(self) -> bool:
        """Whether it was made to its end, be it undone since."""
        return any(isinstance(line, Committed) for line in self.lines)

    @property
    def state(self) -> str:
        """One of STATES."""
        if self.undoing is not None:
            return "undoing"
        if self.committed:
            return "committed"
        return "changing" if self.doings else "preparing"

    @property
    def actions(self) -> tuple[str, ...]:
        """What it does, a sentence each."""
        return tuple(action.summary for action in self.begin.plan.actions if action.steps) if self.begin else ()

    @property
    def kept(self) -> tuple[Kept, ...]:
        return tuple(Kept(path=each.path, copy=join(self.home, each.store)) for each in self.moves
                     if each.kind == "aside")

    @property
    def made(self) -> tuple[str, ...]:
        return tuple(each.path for each in self.moves if each.kind == "place")


def names_in_store(tree: Tree) -> list[str]:
    """Names in `.stackfix`; none where there is no such folder. Raises CannotWrite for one that is not ours to read."""
    found = tree.status(STORE)
    if found is not None and not stat.S_ISDIR(found.st_mode):
        what = "a link" if stat.S_ISLNK(found.st_mode) else "a file"
        raise CannotWrite(f"{tree.prefix}/{STORE}", f"is {what}, and no folder of repairs: stackfix makes none",
                          "look at what it is, and move it away")
    try:
        return tree.names(STORE) if found is not None else []
    except FileNotFoundError:           # the last owner removed it meanwhile
        return []
    except OSError as error:
        raise CannotWrite(f"{tree.prefix}/{STORE}", f"cannot be read: {error.strerror}",
                          "run as the user who owns the environment") from error


def numbers(tree: Tree) -> list[int]:
    """The numbers of the transactions, sorted."""
    return sorted(int(name) for name in names_in_store(tree) if NUMBER.fullmatch(name))


def load(tree: Tree, number: int) -> Recorded:
    """One transaction. Raises JournalDamaged."""
    home = home_of(number)
    lines = read_journal(tree, home)
    if not lines and any(tree.is_folder(join(home, name)) for name in (KEPT, NEW)):     # made after the first line only
        raise damaged(tree, join(home, JOURNAL), "is gone or empty, and the change had begun")
    return Recorded(number=number, home=home, lines=lines)


def last(tree: Tree) -> Recorded | None:
    """The last transaction; None where there is none."""
    found = numbers(tree)
    return load(tree, found[-1]) if found else None


def home_of(number: int) -> str:
    return f"{STORE}/{number:04d}"


def new_home(tree: Tree) -> tuple[int, str]:
    """Number and folder of a new transaction."""
    number = max(numbers(tree), default=0) + 1
    home = home_of(number)
    with tree.folder(STORE) as folder:
        syscalls.make_folder(home.rpartition("/")[2], folder=folder, mode=0o700)
        syscalls.sync(folder)
    return number, home


def discard(tree: Tree, found: Recorded) -> tuple[Remains, ...]:
    """Deletes a transaction that is over, and says what stays. A kill meanwhile leaves it under a name that says so."""
    name = found.home.rpartition("/")[2]
    with tree.folder(STORE) as folder:
        syscalls.rename(name, f"{TRASH}{name}-{secrets.token_hex(4)}", old_folder=folder, new_folder=folder)
    sync_folders(tree, [STORE])
    return clear_trash(tree)


def trash(tree: Tree) -> list[str]:
    """Folders of transactions that are over and not yet deleted."""
    return [join(STORE, name) for name in names_in_store(tree) if name.startswith(TRASH)]


def clear_trash(tree: Tree) -> tuple[Remains, ...]:
    """Deletes what is over, as far as can be, and says what stays and why."""
    left = []
    for path in trash(tree):
        try:
            remove(tree, path)
        except OSError as error:        # a file made immutable; an installer that outlived its parent may write there
            name = f" ({error.filename})" if isinstance(error.filename, str) else ""
            left.append(Remains(path=path, reason=f"{error.strerror or error}{name}"))
    return tuple(left)
