"""What `stackfix probe` prints: a line for each step as it ends, then what they come to."""

from __future__ import annotations

from collections.abc import Iterator

from stackfix.report.printable import printable
from stackfix.report.redact import redacted
from stackfix.report.style import Style
from stackfix.verify.records import Probe, ProbeStep

COLOURS = {"works": "green", "fails": "red", "cannot-tell": "dim"}
WIDTH = 22          # of the column of names


def step_lines(step: ProbeStep, style: Style, *, verbose: bool, quiet: bool) -> Iterator[str]:
    """`works        torch.matmul.fp32     product: relative error 1.1e-07, 3.1e-05 allowed`."""
    if quiet and step.verdict != "fails":
        return
    verdict = step.verdict.replace("-", " ")
    time = f" ({step.seconds:.1f} s)" if verbose else ""
    text = f"{step.reason}: {step.detail}" if step.reason and step.detail else step.reason or step.detail
    line = f"  {style(verdict, COLOURS[step.verdict])}{' ' * (13 - len(verdict))}{step.name:<{WIDTH}}"
    yield redacted(f"{line} {printable(text)}{time}".rstrip())
    if verbose or step.verdict == "fails":
        for path in step.libraries:
            yield style(f"{' ' * 15}{printable(path)}", "dim")


def sum_lines(probe: Probe, style: Style) -> Iterator[str]:
    """The whole in one line, and where it did not work, the step that says so."""
    verdict = style(probe.verdict.replace("-", " "), COLOURS[probe.verdict])
    counted = [each for each in probe.steps if each.counts]
    works = sum(each.verdict == "works" for each in counted)
    tried = f"{works} of {len(counted)} steps work"
    device = f", {printable(probe.device)}" if probe.device else ""
    if probe.verdict == "works":
        yield f"{verdict}: {tried}{device}"
        return
    first = next((each for each in counted if each.verdict == probe.verdict), None)
    where = f" ({first.name})" if first is not None else ""
    yield f"{verdict}: {probe.reason}{where}, {tried}{device}"
