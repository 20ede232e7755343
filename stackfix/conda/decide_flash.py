"""Which releases of flash-attn are tried with a torch of the channels: their own, then those with a fitting wheel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from packaging.version import Version

from stackfix.conda.bounds import lines_for
from stackfix.conda.candidates import searched
from stackfix.conda.matching import admits_version
from stackfix.conda.partner import CondaSide
from stackfix.errors import Unreachable
from stackfix.matrix.query import CPU
from stackfix.resolve.flash_attn import FlashAttn
from stackfix.resolve.pep508 import admits, parse_version
from stackfix.resolve.question import FLASH_ATTN, Question
from stackfix.resolve.records import Target
from stackfix.resolve.stack import Stack, cuda_words

MAX_RELEASES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class FlashChoice:
    """One thing that may be done about flash-attn: a release, or leaving it out and why."""

    release: str | None
    out: str | None = None


def flash_choices(
    flash: FlashAttn, question: Question, side: CondaSide, stack: Stack, targets: list[Target],
) -> Iterator[FlashChoice]:
    """What is tried, best first; leaving it out comes last, and only where it was not asked for.

    Raises Unreachable where it was asked for, and neither the release source nor the index tells of its wheels.
    """
    if question.request.no_flash_attn or any(line.name == FLASH_ATTN for line in question.lines):
        yield FlashChoice(release=None)
        return
    none = f"no channel has it for torch {stack.text} ({cuda_words(stack.cuda)})"
    out = f"{none}, and it has no prebuilt wheel for such a build"
    found = dict.fromkeys(_of_channels(question, side, stack, targets))
    try:
        found.update(dict.fromkeys(_of_wheels(flash, question, stack, targets)))
    except Unreachable as fault:
        if question.wants_flash_attn and not found:
            raise
        out = f"{none}, and nothing could be learnt of its wheels: {fault.what()}"
    for release in list(found)[:MAX_RELEASES]:
        yield FlashChoice(release=release)
    if not question.wants_flash_attn:
        yield FlashChoice(release=None, out=out if stack.cuda != CPU else "it has no CPU build")


def _of_channels(question: Question, side: CondaSide, stack: Stack, targets: list[Target]) -> Iterator[str]:
    """Releases that a channel has a package of for this torch and the first Python, newest first."""
    channels = side.solves(question.request).channels
    records = channels.records(searched(channels), targets[0].platform, FLASH_ATTN)
    versions: dict[Version, str] = {}
    for record in records:
        version = parse_version(record.version)
        bounds = [line.text for line in lines_for(record.depends, "pytorch", "libtorch")]
        if version is not None and all(admits_version(bound, stack.text) is not False for bound in bounds):
            versions[version] = record.version
    wanted = [version for version in versions if all(admits(ask.specifier, version) for ask in question.flash_attn)]
    yield from (versions[version] for version in sorted(wanted, reverse=True))


def _of_wheels(flash: FlashAttn, question: Question, stack: Stack, targets: list[Target]) -> Iterator[str]:
    """Releases that have a prebuilt wheel for this torch on every target."""
    builds = {target: stack.builds[target.place] for target in targets}
    specifiers = [ask.specifier for ask in question.flash_attn]
    kept = dict(question.request.kept).get(FLASH_ATTN)
    for plan in flash.plans(builds, specifiers, question.request.gpu_archs, kept):
        if not plan.left_out:
            yield plan.version
