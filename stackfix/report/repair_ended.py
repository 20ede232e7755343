"""What `stackfix repair` and `stackfix undo` print of what they did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from stackfix.apply.records import Applied, Forgotten, Kept, Pending, Remains, Transaction, Undone, Unreadable
from stackfix.report.check import counted, title
from stackfix.report.lines import Manner, led
from stackfix.report.printable import printable
from stackfix.report.repair_records import Verified
from stackfix.verify.records import Probe

COLOURS = {"works": "green", "clean": "green", "fails": "red", "findings": "yellow", "cannot-tell": "dim"}
MOST = 8                # paths of one kind without -v
MOST_FILES = 2          # libraries in the line of a load


def applied_lines(applied: Applied, manner: Manner) -> Iterator[str]:
    """What was changed, where what was there is kept, and who still has the old files."""
    count = len(applied.made)
    made = f" {count} path{'s' * (count != 1)} made, {len(applied.kept)} kept in {applied.prefix}/{applied.folder}"
    yield from led([("changed:", "green")], printable(made), "", manner)


def verified_lines(verified: Verified, undo: str, manner: Manner) -> Iterator[str]:
    """The three proofs, a line each, and what stays; first of all that one has failed. `undo`: the command."""
    if not verified.works:
        yield from led([("not proven:", "red")], " the change is made and stays, but what was tried afterwards fails",
                       "  ", manner)
    static = "findings" if verified.findings else "clean"
    told = counted(verified.findings) + " left" if verified.findings else "nothing above a note is found"
    yield from proof("simulation", static, told, manner)
    yield from proof("load", *load_verdict(verified), manner)
    yield from proof("kernels", *verdict(verified.kernel), manner)
    if verified.reason:
        yield from led([("  because ", "dim")], printable(verified.reason), "    ", manner)
    yield printable(f"`{undo}` takes it back")


def verdict(probe: Probe | None) -> tuple[str, str]:
    """The verdict, and what was tried."""
    if probe is None:
        return "cannot-tell", "not tried"
    tried = [each for each in probe.steps if each.counts]
    bad = next((each for each in tried if each.verdict == probe.verdict and probe.verdict != "works"), None)
    if bad is not None:
        return probe.verdict, f"{bad.name}: {bad.detail or bad.reason}"
    return probe.verdict, ", ".join(each.detail or each.name for each in tried[:3]) or "not tried"


def load_verdict(verified: Verified) -> tuple[str, str]:
    """The verdict, and in plain words what was loaded, and from where."""
    word, told = verdict(verified.load)
    if verified.load is None or word != "works":
        return word, told
    counting = [each for each in verified.load.steps if each.counts]
    loads = [each.detail or each.name for each in counting if each.name != "activation"]
    activated = ["in an activated shell"] if len(loads) < len(counting) else []
    files = [f"{name} of {folder}" for folder, _, name in (each.rpartition("/") for each in verified.libraries)]
    more = [f"{len(files) - MOST_FILES} more"] if len(files) > MOST_FILES else []
    said = [*activated, ", ".join(loads[:3]) or "nothing was imported",
            *([f"with {' and '.join((*files[:MOST_FILES], *more))}"] if files else [])]
    return word, " ".join(said) if not activated else f"{said[0]}: {' '.join(said[1:])}"


def proof(name: str, word: str, told: str, manner: Manner) -> Iterator[str]:
    shown = word.replace("-", " ")
    lead = [(f"  {name:<12}", ""), (shown, COLOURS[word]), (" " * (13 - len(shown)), "")]
    yield from led(lead, printable(told), " " * 27, manner)


def surprise_lines(verified: Verified, manner: Manner) -> Iterator[str]:
    """Why a repair was taken back."""
    yield from led([("taken back:", "red")], " the environment, looked at anew, is not what the plan had foretold; it "
                   "is as it was before", "  ", manner)
    for each in verified.surprises:
        yield from title(each, manner)


def undone_lines(undone: Sequence[Undone], manner: Manner) -> Iterator[str]:
    """What was taken back, and what is kept and where."""
    for each in undone:
        if each.number is None:
            if not each.remains:
                yield from led([("cleared:", "green")], printable(f" remains of a run in {each.prefix}"), "", manner)
            yield from remains_lines(each.prefix, each.remains)
            continue
        yield from led([(f"taken back: repair {each.number}", "green")], printable(f" of {each.prefix}"), "", manner)
        yield from (f"  {printable(action)}" for action in each.actions)
        back = set(each.restored)       # what took its place is not worth a word of its own
        yield from paths("removed", [path for path in each.removed if path not in back], manner)
        yield from paths("restored", each.restored, manner)
        yield from paths("gone", [f"{path}, since the repair" for path in each.gone if path not in back], manner)
        yield from paths("left", [f"{path}, with what others have put there" for path in each.left], manner)
        yield from kept_lines(each.prefix, each.kept)
        yield from remains_lines(each.prefix, each.remains)


def forgotten_lines(prefix: str, forgotten: Sequence[Forgotten], manner: Manner) -> Iterator[str]:
    """Which records were ended, and of what the copies are gone."""
    if not forgotten:
        yield printable(f"nothing to forget: no repair is recorded in {prefix}")
    for each in forgotten:
        told = f" of {each.prefix}, which stays as it is; the copies from before it are deleted"
        yield from led([(f"forgotten: repair {each.number}", "green")], printable(told), "", manner)
        yield from (f"  {printable(action)}" for action in each.actions)
        yield from paths("dropped", each.dropped, manner)
        yield from remains_lines(each.prefix, each.remains)


def remains_lines(prefix: str, found: Sequence[Remains]) -> Iterator[str]:
    for each in found:
        yield printable(f"  remains    {prefix}/{each.path} could not be deleted: {each.reason}; it is of no use any "
                        "more, and the next undo tries again")


def kept_lines(prefix: str, kept: Sequence[Kept]) -> Iterator[str]:
    for each in kept:
        yield printable(f"  kept       {each.path}, which was changed after the repair, is now {prefix}/{each.copy}")


def paths(verb: str, found: Sequence[str], manner: Manner) -> Iterator[str]:
    """A line each, the first ones without -v."""
    shown = found if manner.verbose or len(found) <= MOST + 1 else found[:MOST]
    yield from (printable(f"  {verb:<10} {path}") for path in shown)
    if len(shown) < len(found):
        yield f"  … {len(found) - len(shown)} more (-v)"


def transaction_lines(prefix: str, found: Sequence[Transaction], manner: Manner,
                      lost: Sequence[Unreadable], unused: Mapping[int, Sequence[str]],
                      over: Sequence[str] = ()) -> Iterator[str]:
    """The repairs that can be taken back, the last one first; those that cannot be read; what is over and stays.

    `unused`: number -> what it was made for, where that is not there any more.
    """
    if not found and not lost:
        yield printable(f"no repair is recorded in {prefix}")
    for each in found:
        yield from led([(f"repair {each.number}", "bold")], printable(f" of {each.started}, kept in {each.folder}"), "",
                       manner)
        yield from (f"  {printable(action)}" for action in each.actions)
        if each.number in unused:
            yield printable(f"  of no use any more, for {gone_words(unused[each.number])}")
        if manner.verbose:
            yield from paths("made", each.made, manner)
            yield from (printable(f"  kept       {one.path}, now {one.copy}") for one in each.kept)
    for unknown in lost:
        told = printable(f" cannot be read: {unknown.reason}")
        yield from led([(f"repair {unknown.number}", "bold")], told, "", manner)
        if unknown.hint:
            yield printable(f"  hint: {unknown.hint}")
    for path in over:
        yield printable(f"remains: {prefix}/{path} is of a run that is over; the next undo deletes it if it can")


def gone_words(names: Sequence[str]) -> str:
    """What is not there any more, as a part of a sentence."""
    return f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} gone"


def pending_lines(pending: Pending, manner: Manner) -> Iterator[str]:
    """An earlier repair that was stopped in the middle."""
    since = f" (begun {pending.started} by process {pending.pid} on {pending.host})" if pending.started else ""
    yield from led([("unfinished:", "yellow")], printable(
        f" an earlier change of {pending.prefix} was stopped while {pending.state}{since}"), "  ", manner)
    yield from (f"  {printable(action)}" for action in pending.actions)
    if not pending.touched:
        yield "  nothing in the environment was changed by it yet"
