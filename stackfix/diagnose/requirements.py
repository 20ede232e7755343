"""What installed packages require of each other and is not so: declared, known to the matrix, or between companions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stackfix.diagnose.abi_told import working_lines
from stackfix.diagnose.finding_records import Culprit, Finding, Requester
from stackfix.diagnose.install_lines import check_line, install_line
from stackfix.diagnose.make_finding import make_finding
from stackfix.diagnose.requirements_companions import find_companion_mismatches, is_companion
from stackfix.diagnose.requirements_compiled import find_older_than_compiled
from stackfix.diagnose.requirements_judge import Judge, Unmet
from stackfix.diagnose.requirements_lines import cut
from stackfix.diagnose.requirements_rules import find_broken_rules
from stackfix.diagnose.requirements_stack import PARTS, Stack, named
from stackfix.diagnose.situation import View
from stackfix.inspect.machine_records import Undecided

MOST = 12                           # lines of evidence for packages that are none of the GPU stack


def find_requirement_faults(view: View) -> Iterator[Finding | Undecided]:
    """SF601, SF602 and SF603. What the loader shows to fail already is its finding; here it is a note."""
    judge, stack = Judge(view), Stack(view)
    others: list[Unmet] = []
    for each in judge.unmet():
        if isinstance(each, Undecided):
            yield each
        elif not (stack.has(each.by.name) or stack.has(each.line.name)):
            others.append(each)
        elif not (each.line.name == "torch" and each.found and is_companion(view, each.by)):    # SF602 says it
            yield of_stack(view, stack, each)
    if others:
        yield of_others(view, others)
    if any(name == "torch" or name.startswith(PARTS) for name in view.distributions):
        yield from find_older_than_compiled(view, stack)
        yield from find_companion_mismatches(view, stack)
        yield from find_broken_rules(view, stack, judge)


def of_stack(view: View, stack: Stack, unmet: Unmet) -> Finding:
    """A requirement of, or on, a member of the GPU stack."""
    by, line, found = unmet.by, unmet.line, unmet.found
    asked = f"{line.name}{line.specifier}"
    shown = stack.shown(line.name)
    severity = severity_of(unmet, stack)
    is_there = f"{found.version} is installed" if found else "it is not installed"
    pinned = "it is built and tested with exactly that version" if line.specifier.startswith("==") else \
        "other versions are outside of what it is made for"
    works = tuple(working_lines(view, by.name, asked)) if line.name == "torch" and found and not shown else ()
    if works and severity == "warning":
        severity = "note"           # to move torch for what can be loaded would break what else was built for it
    evidence = [f"{by.metadata}/METADATA: Requires-Dist: {cut(line.text)}"]
    if found:
        evidence.append(f"{found.metadata}: {found.version}, installed by {found.installer or found.manager}")
    if shown:
        evidence.append(f"the loader shows what comes of it: {shown}")
    evidence += works
    return make_finding(
        "SF601", severity, level=stack.level(line.name),
        summary=f"{named(by)} requires {cut(asked)}, and {is_there}",
        why=f"{by.name} declares it, and {pinned}; a later installation has moved it, or left it out.",
        culprit=Culprit(package=named(found) if found else line.name), requester=Requester(package=named(by)),
        evidence=tuple(evidence),
        cure=(install_line(view, found or by, asked, alone=found is not None),)
        if asked == cut(asked) and not works else (),
    )


def severity_of(unmet: Unmet, stack: Stack) -> str:
    """How bad it is: what is required and absent fails when it is imported; else symbols decide, in other findings."""
    by, line, found = unmet.by, unmet.line, unmet.found
    if by.manager != "pip" and found is None:
        return "note"               # conda and distributions have it under another name
    if not stack.has(line.name):
        return "warning" if by.name == "torch" and found is None else "note"
    if stack.shown(line.name) or (found is None and stack.shown(by.name)):
        return "note"
    if line.name == "torch" and stack.is_for_another_torch(by.name):
        return "note"               # that is what the loader shows of it, in a finding of its own
    return "error" if line.name == "torch" and found is None and stack.has(by.name) else "warning"


def of_others(view: View, unmet: Sequence[Unmet]) -> Finding:
    """Packages that are none of the GPU stack: one note for all."""
    lines = [f"{named(each.by)} requires {cut(each.line.text.partition(';')[0].strip())}, and "
             f"{each.found.version if each.found else 'nothing'} is installed" for each in unmet]
    more = len(lines) - MOST
    return make_finding(
        "SF601", "note", level="environment",
        summary=lines[0] if len(lines) == 1 else
        f"{len(lines)} declared requirements are not met, none of them of the GPU stack",
        why="Later installations have moved them, or packages were installed without what they require.",
        culprit=Culprit(package=named(unmet[0].found) if unmet[0].found else unmet[0].line.name),
        requester=Requester(package=named(unmet[0].by)),
        evidence=(*lines[:MOST], *((f"… {more} more",) if more > 0 else ())),
        cure=(check_line(view),), why_not="they are not part of the GPU stack",
    )
