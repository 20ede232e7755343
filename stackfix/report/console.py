"""What people read: plain lines, coloured when the terminal takes colour. Text for stderr, data for stdout."""

from __future__ import annotations

from collections.abc import Iterator

from stackfix.errors import BadInput, StackfixError
from stackfix.report.redact import one_line, redacted
from stackfix.report.style import Style
from stackfix.resolve.records import Lock, NoConsistentStack, StackSummary


def stack_line(stack: StackSummary) -> str:
    """`torch 2.3.1 · CUDA 12.1 · cuDNN 8.9.2.26 · …`, parts that are absent left out."""
    torch = f"torch {stack.torch}" if stack.nightly is None else f"torch {stack.torch} (nightly of {stack.nightly})"
    parts = [torch, "CPU build" if stack.cuda == "cpu" else f"CUDA {stack.cuda}"]
    parts += [
        f"{label} {value}"
        for label, value in (
            ("cuDNN", stack.cudnn),
            ("nvJitLink", stack.nvjitlink),
            ("NCCL", stack.nccl),
            ("flash-attn", stack.flash_attn),
        )
        if value
    ]
    if stack.driver_min:
        parts.append(f"driver >= {stack.driver_min}")
    return " · ".join(parts)


def lock_lines(lock: Lock, style: Style) -> Iterator[str]:
    """The decision in a few lines: the stack, each target with its number of packages, the notes."""
    yield style(stack_line(lock.stack), "bold")
    for target in lock.targets:
        steps = sum(package.step == 2 for package in target.packages)
        second = f", {steps} of them in a second step" if steps else ""
        yield (
            f"  Python {target.target.python} on {target.target.place}: "
            f"{len(target.packages)} packages{second}"
        )
    for conda in lock.conda:
        pip = f" and {len(conda.pip)} from pip" if conda.pip else ""
        yield (
            f"  conda, Python {conda.target.python} on {conda.target.platform}: layout {conda.layout},"
            f" {len(conda.records)} packages{pip}"
        )
    for note in lock.notes:
        yield f"{style('note:', 'yellow')} {one_line(redacted(note))}"


def error_lines(error: StackfixError, style: Style, *, headline: str | None = None) -> Iterator[str]:
    """`error:` line (`headline` in place of the error's own), the causes, what can be done. No login is in it."""
    yield from map(redacted, _error_lines(error, style, headline))


def _error_lines(error: StackfixError, style: Style, headline: str | None) -> Iterator[str]:
    said = headline or error.what()
    # of the user's own files and options all faults are told, a line each
    shown = said if isinstance(error, BadInput) else one_line(said)
    yield f"{style('error:', 'red')} {shown}"
    if isinstance(error, NoConsistentStack):
        yield from _explanation(error, style)
    step = error.next_step()
    if step is not None:
        yield f"{style('hint:', 'yellow')} {one_line(step)}"


def _explanation(error: NoConsistentStack, style: Style) -> Iterator[str]:
    if error.causes:
        yield "because"
    for cause in error.causes:
        yield f"  - {one_line(cause.text)} {style(f'[{cause.source}]', 'dim')}"
    if error.nearest:
        yield "nearest that work (each was solved with the same sources):"
    for offer in error.nearest:
        yield f"  {style(offer.change, 'green')}: {offer.gives}"
        yield f"    {offer.command}"
    if error.causes and not error.nearest:
        yield "no single change of these was found to work"
