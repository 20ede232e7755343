"""A transaction is taken back: what it brought goes, what it set aside is there again."""

from __future__ import annotations

from dataclasses import dataclass

from stackfix.apply.errors import ChangedSince, NotTakenBack, ReplacedSince
from stackfix.apply.expected import Before, Since, since, topmost
from stackfix.apply.journal import Journal
from stackfix.apply.journal_records import Undoing
from stackfix.apply.lock import STORE
from stackfix.apply.managed import must_be_writable
from stackfix.apply.moves import make_folders, move
from stackfix.apply.records import Kept, Successor, Undone
from stackfix.apply.store import CHANGED, Recorded, discard
from stackfix.apply.successors import successors
from stackfix.apply.tree import Tree, is_below, join, split
from stackfix.apply.work import Work, free_name


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedBack:
    """What is to be told of the paths of a transaction."""

    kept: tuple[Kept, ...] = ()     # what was set apart, for it was changed since
    gone: tuple[str, ...] = ()      # what somebody had taken away already
    left: tuple[str, ...] = ()      # folders that were brought in and in which others have something now


def taken_back(tree: Tree, found: Recorded, *, forced: bool) -> Undone:
    """The same bytes, modes, links and link counts as before the transaction, whose folder is deleted.

    Raises ChangedSince where something was changed since, unless `forced`: that is then kept apart. Raises
    NotTakenBack where it cannot be finished; all copies are still there, and it can be tried again.
    """
    forced = forced or (found.undoing is not None and found.undoing.forced)
    done = MovedBack()
    if found.lines:
        journal = Journal(tree, found.home)
        try:
            done = move_back(tree, found, journal, forced=forced)
        finally:
            journal.close()
    remains = discard(tree, found)
    return Undone(prefix=tree.prefix, number=found.number, actions=found.actions,
                  removed=tuple(path for path in found.made if path not in (*done.gone, *done.left)),
                  restored=tuple(each.path for each in found.kept), kept=done.kept, gone=done.gone, left=done.left,
                  remains=remains)


def move_back(tree: Tree, found: Recorded, journal: Journal, *, forced: bool) -> MovedBack:
    """All moves are taken back. Raises as `taken_back` does."""
    work = Work(tree, found, journal)
    made = [each for each in found.moves if work.is_made(each)]
    before = Before(tree, found.home, made, resumed=found.undoing is not None)
    now = since(tree, before, made)
    later = successors(tree, found)
    must_be_takable(tree, now, later, forced=forced)
    newer = [path for each in later for path in each.paths]
    for folder in {split(path)[0] for path in (*(each.path for each in made), *newer)}:
        if tree.is_folder(folder):
            must_be_writable(tree, folder)
    folders = folders_of(found)
    new = [path for path in folders if before.copy_of(path) is None]
    announce(found, journal, forced=forced)
    try:
        kept = set_apart(tree, found.number, [*newer, *(path for path, _ in now.differences if not (
            path in folders and tree.is_folder(path)))])    # a folder of ours with another mode goes as it is
        work.take_back()
    except OSError as error:
        raise not_taken_back(tree, found, error.strerror or str(error)) from error
    left = [each for each in found.moves if each.kind == "aside" and tree.exists(work.store_of(each))]
    if left:
        raise not_taken_back(tree, found, f"{left[0].path} is not back")
    return MovedBack(kept=kept, gone=now.gone, left=tuple(topmost(path for path in new if tree.is_folder(path))))


def must_be_takable(tree: Tree, now: Since, later: tuple[Successor, ...], *, forced: bool) -> None:
    """Raises ChangedSince for what is lost without `forced`, ReplacedSince also for what cannot be set apart."""
    if later and (not forced or any(each.stuck for each in later)):
        theirs = [path for each in later for path in (*each.paths, each.info)]
        raise ReplacedSince(tree.prefix, tuple(
            (path, how) for path, how in now.differences if not any(is_below(path, each) for each in theirs)), later)
    if now.differences and not forced:
        raise ChangedSince(tree.prefix, now.differences)


def folders_of(found: Recorded) -> set[str]:
    """The folders that it has brought in."""
    return {join(each.path, entry.path) for each in found.moves for entry in each.entries
            if entry.node.kind == "folder"}


def announce(found: Recorded, journal: Journal, *, forced: bool) -> None:
    """Writes down that the moves are taken back. Raises NotTakenBack where a full disk takes no line."""
    if found.undoing is not None and found.undoing.forced == forced:
        return
    try:
        journal.append(Undoing(forced=forced))
    except OSError as error:
        if found.state == "committed":      # without the line it would still count as whole
            raise NotTakenBack(f"{found.home}/journal", f"cannot be written: {error.strerror}",
                               "nothing was undone; make room, and try again") from error


def set_apart(tree: Tree, number: int, paths: list[str]) -> tuple[Kept, ...]:
    """Moves what was changed since away, so that nothing of it is lost with what we brought. Raises OSError."""
    kept = []
    for path in paths:
        if not tree.exists(path):
            continue
        copy = free_name(tree, join(STORE, f"{CHANGED}{number:04d}", path))
        make_folders(tree, split(copy)[0], mode=0o700)
        move(tree, path, copy, merge=False, expand=lambda: None)
        kept.append(Kept(path=path, copy=copy))
    return tuple(kept)


def not_taken_back(tree: Tree, found: Recorded, reason: str) -> NotTakenBack:
    """The error with the places of the copies, first the one that is next: it is likely to be what is stuck."""
    left = [each for each in reversed(found.kept) if tree.exists(each.copy)]
    shown = ", ".join(f"{each.path} is at {each.copy}" for each in left[:3]) or "all that was set aside is back"
    more = f", and {len(left) - 3} more there" if len(left) > 3 else ""
    return NotTakenBack(tree.prefix, f"could not be taken back: {reason}",
                        f"the copies are kept: {shown}{more}; see to the reason and undo again")
