"""Which releases of flash-attn are tried with a torch of the channels: their own, then those with a fitting wheel."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import Version

from stackfix.conda.bounds import lines_for
from stackfix.conda.candidates import searched
from stackfix.conda.matching import admits_version
from stackfix.conda.partner import CondaSide
from stackfix.resolve.flash_attn import FlashAttn
from stackfix.resolve.pep508 import admits, parse_version
from stackfix.resolve.question import FLASH_ATTN, Question
from stackfix.resolve.records import Target
from stackfix.resolve.stack import Stack

MAX_RELEASES = 3


def flash_releases(
    flash: FlashAttn, question: Question, side: CondaSide, stack: Stack, targets: list[Target],
) -> Iterator[str | None]:
    """Releases, best first; None, which leaves it out, comes last and only where it was not asked for."""
    if not question.request.no_flash_attn and not any(line.name == FLASH_ATTN for line in question.lines):
        found = dict.fromkeys((
            *_of_channels(question, side, stack, targets), *_of_wheels(flash, question, stack, targets)))
        yield from list(found)[:MAX_RELEASES]
    if not question.wants_flash_attn:
        yield None


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
    builds = {target: stack.builds[target.platform] for target in targets}
    specifiers = [ask.specifier for ask in question.flash_attn]
    kept = dict(question.request.kept).get(FLASH_ATTN)
    for plan in flash.plans(builds, specifiers, question.request.gpu_archs, kept):
        if not plan.left_out:
            yield plan.version
