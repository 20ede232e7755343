"""What `stackfix repair` prints: the plan with each change, what it leaves and why, advice; then what became of it."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from stackfix.diagnose.finding_records import Diagnosis, Finding
from stackfix.plan.records import Action, Change, Install, Left, Plan, Unreached, WriteFile
from stackfix.quick import replace
from stackfix.report.check import counted, title
from stackfix.report.lines import Manner, led, wrapped
from stackfix.report.printable import printable
from stackfix.report.redact import redacted
from stackfix.report.repair_records import Refusal

Texts = Callable[[str], str | None]     # of the files that are there; paths relative to the prefix
MOST = 8                # changes of one action without -v
UNITS = (("GB", 10 ** 9), ("MB", 10 ** 6), ("kB", 10 ** 3))
MEANS = {"activate": "activation", "preload": "preload hook", "symlink": "link", "reinstall": "installation"}


def plan_lines(plan: Plan, diagnosis: Diagnosis, texts: Texts, manner: Manner, *,
               refused: Refusal | None = None, folder: str | None = None) -> Iterator[str]:
    """The plan for people; nothing but the headline where there is nothing to do.

    refused: why it cannot be made
    folder: commands for a preload folder that does what cannot be done here
    """
    yield from map(redacted, whole_lines(plan, diagnosis, texts, manner, refused))
    if folder is not None:
        yield from folder_lines(folder, manner)
    if refused is not None and refused.hint:        # what helps is read last
        yield from map(redacted, wrapped(printable(f"next: {refused.hint}"), "  ", manner))


def what_is_left(plan: Plan, diagnosis: Diagnosis, manner: Manner) -> Iterator[str]:
    """Of a plan that is made without being shown only the errors that it does not cure."""
    errors = {(each.code, each.summary) for each in diagnosis.findings if each.severity == "error"}
    yield from map(redacted, left_lines([each for each in plan.left if (each.code, each.summary) in errors], manner))


def whole_lines(plan: Plan, diagnosis: Diagnosis, texts: Texts, manner: Manner,
                refused: Refusal | None) -> Iterator[str]:
    serious = [each for each in diagnosis.findings if each.severity != "note"]
    changing = [each for each in plan.actions if each.steps]
    yield from headline(plan, serious, changing, manner)
    if refused is not None:
        yield from led([("not to be made here:", "red")], f" {printable(refused.message)}", "  ", manner)
    for finding in serious:
        yield from title(finding, manner)
    for number, action in enumerate(changing, start=1):
        yield ""
        yield from action_lines(number, action, texts, manner)
    yield from variable_lines(plan, manner)
    yield from left_lines(plan.left, manner)
    yield from advice_lines([each for each in plan.actions if each.kind == "advice"], manner)


def folder_lines(command: str, manner: Manner) -> Iterator[str]:
    """With -v the commands as they stand: what is indented cannot be pasted. Else one line, for they are long."""
    told = "a preload folder of your own does the same, and changes nothing in the environment"
    yield ""
    if not manner.verbose:
        yield from wrapped(f"{told}: -v prints the commands that make it", "", manner)
        return
    yield from wrapped(f"{told}, for each Python of it that has the folder on PYTHONPATH (-I, -E and -S read none). "
                       "For sh, bash or zsh; nothing of it is run:", "", manner)
    yield from map(printable, command.splitlines())


def headline(plan: Plan, serious: Sequence[Finding], changing: Sequence[Action], manner: Manner) -> Iterator[str]:
    """How many findings, and how many of them the plan cures."""
    place = printable(plan.prefix)
    if not serious:
        yield from led([("nothing to repair", "green")], f" in {place}", "  ", manner)
        return
    left = {(each.code, each.summary) for each in plan.left}
    cured = sum((each.code, each.summary) not in left for each in serious)
    if not changing:
        yield from led([(counted(serious), "red")], f" in {place}, and {why_none(plan)}", "  ", manner)
        return
    lead = [(f"{len(changing)} action{'s' * (len(changing) != 1)}", "bold")]
    yield from led(lead, f" for {place}: {cured} cure{'s' * (cured != 1)} of {counted(serious)}, by simulation", "  ",
                   manner)


def why_none(plan: Plan) -> str:
    """Why a plan has no change: no more than what is known."""
    far = [each for each in plan.left if each.unreached]
    auto = [each for each in plan.left if each.by_auto]
    if plan.left and all(each.by_scripts for each in plan.left):
        return f"the scripts of an earlier repair cure {portion(plan.left, plan)} once it is activated anew"
    alarming = [each for each in far if any(one.code == "hash-mismatch" for one in each.unreached)]
    if alarming:
        said = f"the file for a cure of {portion(alarming, plan)} is not the one that was promised (sha256)"
    elif far:
        said = f"what a cure of {portion(far, plan)} needs is out of reach"
    elif plan.method != "auto":
        said = f"no {MEANS[plan.method]} would cure any"
    elif any(each.installer for each in plan.left):
        said = "only the tool that installed what is wrong can change it"
    elif any(each.is_refused for each in plan.left):
        said = "no change that may be made would cure any"
    elif plan.lock is not None:
        said = f"nothing that {plan.lock} pins would cure any"
    elif plan.is_whole:
        said = "no change of it would cure any"
    else:
        said = "no cure was found among all that were simulated"
    if auto:
        return f"{said}; `--method auto` would cure {portion(auto, plan)}"
    tried = [each for each in plan.left if each.by_install]
    return f"{said}; an installation may cure {portion(tried, plan)}: `--method reinstall`" if tried else said


def portion(some: Sequence[Left], plan: Plan) -> str:
    """"it", "all" or "2 of them": some of what a plan leaves."""
    if len(some) == len(plan.left):
        return "it" if len(some) == 1 else "all of them"
    return f"{len(some)} of them"


def action_lines(number: int, action: Action, texts: Texts, manner: Manner) -> Iterator[str]:
    """One action: what it does, what it cures, what it changes."""
    codes = ", ".join(f"{code} ({count} times)" if count > 1 else code for code, count in Counter(action.cures).items())
    yield from led([(f"{number}. {action.kind}", "bold")], f"  cures {codes}" if codes else "", "   ", manner)
    yield from wrapped(printable(action.summary), "   ", manner)
    whole = replace(manner, width=None)
    shown = action.changes if manner.verbose or len(action.changes) <= MOST + 1 else action.changes[:MOST]
    for each in shown:
        verb, rest = change_words(each)
        yield from led([("   ", ""), (f"{verb:<10}", "dim")], printable(f"{each.path}{rest}"), "", whole)
    if len(shown) < len(action.changes):
        yield f"   … {len(action.changes) - len(shown)} more (-v)"
    for note in action.notes:
        yield from wrapped(printable(f"note: {note}"), "   ", manner)
    installs = any(isinstance(step, Install) for step in action.steps)
    if action.command and installs:
        yield from led([("   ", ""), (f"{'by hand':<10}", "dim")], printable(action.command), "", whole)
    if manner.verbose:
        yield from text_lines(action, texts, manner)


def change_words(change: Change) -> tuple[str, str]:
    """("write", " (new)") for a path."""
    before, after = change.before.kind, change.after.kind
    if change.files is not None:
        verb = "set aside" if after == "absent" else "install" if before == "absent" else "replace"
        return verb, f" ({amount(change.files, change.size or 0)})"
    if after == "absent":
        return "set aside", ""
    old = " (new)" if before == "absent" else " (the old one is kept)"
    if after == "link":
        return "link", f" -> {change.after.target}{old}"
    return ("install" if after == "folder" else "write"), old


def amount(files: int, size: int) -> str:
    """"7 files, 96 MB"."""
    unit, count = next(((unit, size / scale) for unit, scale in UNITS if size >= scale), ("bytes", float(size)))
    return f"{files} file{'s' * (files != 1)}, {count:.2g} {unit}" if count < 10 and unit != "bytes" else \
        f"{files} file{'s' * (files != 1)}, {count:.0f} {unit}"


def text_lines(action: Action, texts: Texts, manner: Manner) -> Iterator[str]:
    """The text of each file that is written, or what of it is other than before."""
    for step in action.steps:
        if isinstance(step, WriteFile):
            old = texts(step.path)
            lines = difflib.unified_diff(
                (old or "").splitlines(), step.text.splitlines(), fromfile=step.path if old is not None else "nothing",
                tofile=step.path, lineterm="", n=1)
            yield from (manner.style(f"   | {printable(line)}", "dim") for line in lines)


def variable_lines(plan: Plan, manner: Manner) -> Iterator[str]:
    """What activation leaves in the variables."""
    if plan.variables:
        yield ""
        yield from wrapped("It holds in a shell in which the environment is activated anew, which then has", "", manner)
        for name, value in plan.variables:
            text = f"{name} unset" if value is None else f"{name}={value}"
            yield from led([("   ", "")], printable(text), "", replace(manner, width=None))


def left_lines(left: Sequence[Left], manner: Manner) -> Iterator[str]:
    """What stays, with the reason."""
    if left:
        yield ""
        yield manner.style("left as it is:", "bold")
    ends = ends_with(left)
    for each in left:
        yield from led([("  ", ""), (each.code, "bold"), (" ", "")], printable(each.summary), "    ", manner)
        yield from wrapped(printable(f"because {reason_of(each, ends)}"), "    ", manner)
        if each.by_auto:
            yield from wrapped(f"`--method auto` would cure it: {' and '.join(each.by_auto)}", "    ", manner)
        elif each.by_install:
            yield from wrapped(printable(f"`--method reinstall` may cure it: {', '.join(each.by_install)}"), "    ",
                               manner)


def ends_with(left: Iterable[Left]) -> tuple[Unreached, ...]:
    """What was out of reach, one for each next step: a command ends with these errors, and does not say them before."""
    found = dict[str | None, Unreached]()
    for far in (one for each in left for one in each.unreached):
        found.setdefault(far.hint, far)
    return tuple(found.values())


def reason_of(left: Left, ends: Sequence[Unreached]) -> str:
    """Why a finding stays, without what the command ends with."""
    reason = left.reason
    for each in ends:
        if each in left.unreached:
            reason = reason.replace(each.what, "something that it needs is out of reach")
    return reason


def advice_lines(advice: Sequence[Action], manner: Manner) -> Iterator[str]:
    """What lies outside of the environment: commands that are never run from here."""
    if advice:
        yield ""
        yield manner.style("for you, or whoever administers the machine; nothing of it is run:", "bold")
    for each in advice:
        codes = ", ".join(dict.fromkeys(each.cures))
        yield from led([("  ", ""), (codes, "bold"), (" ", "")], printable(each.summary), "    ", manner)
        for line in (each.command or "").splitlines():
            yield f"      {printable(line)}"
