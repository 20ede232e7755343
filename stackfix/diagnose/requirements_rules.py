"""Needs that no metadata states: the rules of the matrix, on what is installed."""

from __future__ import annotations

from collections.abc import Iterator

from stackfix.diagnose.faults_text import capital
from stackfix.diagnose.finding_records import Culprit, Finding, Requester
from stackfix.diagnose.install_lines import install_line, uninstall
from stackfix.diagnose.make_finding import make_finding
from stackfix.diagnose.releases import admits
from stackfix.diagnose.requirements_judge import Judge
from stackfix.diagnose.requirements_lines import parse_line
from stackfix.diagnose.requirements_stack import Stack, named
from stackfix.diagnose.situation import View
from stackfix.inspect.environment_records import Distribution
from stackfix.matrix.records import Rule


def find_broken_rules(view: View, stack: Stack, judge: Judge) -> Iterator[Finding]:
    """SF603: each rule of an installed package whose need an installed package does not meet."""
    for rule in view.needs.rules:
        by = view.distributions.get(rule.package)
        line = parse_line(rule.needs) if by is not None and admits(rule.versions, by.version) else None
        found = view.distributions.get(line.name) if line is not None else None
        if by is None or line is None or found is None or admits(line.specifier, found.version):
            continue
        if judge.is_met(rule.versions, by.version) and judge.is_met(line.specifier, found.version) is False:
            yield broken(view, stack, rule, by, found, line.specifier)


def broken(view: View, stack: Stack, rule: Rule, by: Distribution, found: Distribution, specifier: str) -> Finding:
    """The finding of one rule."""
    shown = stack.shown(found.name) or stack.shown(by.name)
    sure = rule.confidence in {"certain", "high"} and by.manager == found.manager == "pip"
    apart = specifier == "<0"
    evidence = [f"{by.metadata}: {by.version}", f"{found.metadata}: {found.version}",
                f"the matrix ({rule.confidence}): {rule.source}"]
    if shown:
        evidence.append(f"the loader shows what comes of it: {shown}")
    return make_finding(
        "SF603", "warning" if sure and not shown else "note", level=stack.level(found.name),
        summary=f"{named(by)} and {named(found)} cannot share an environment" if apart else
        f"{named(by)} needs {found.name}{specifier}, and {found.version} is installed",
        why=f"{capital(rule.why)}. No requirement says so, and installers let it pass.",
        culprit=Culprit(package=named(found)), requester=Requester(package=named(by)), evidence=tuple(evidence),
        cure=(uninstall(view, found),) if apart else (install_line(view, found, f"{found.name}{specifier}"),),
    )
