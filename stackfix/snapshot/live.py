"""Takes a snapshot of channels: the records that py-rattler chooses for each stack of the channels' torch builds.

Whole channels are a hundred times larger than what may come with a wheel. For each release, CUDA variant and Python of
torch the newest build is solved, alone and with each of the stack's companions that goes with it; what any of these
answers holds is kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from stackfix.conda.records import Channel, CondaAsk, CondaRecord, CondaSolved, Spec, VirtualPackage
from stackfix.snapshot.records import Made, Row, Subdir
from stackfix.sources.conda_channels import CondaChannels

TORCH = "pytorch"
COMPANIONS = ("torchvision", "torchaudio", "flash-attn", "xformers", "triton", "transformers", "accelerate",
              "numpy 1.*", "cuda-nvcc", "cudnn <9")
OLDEST = (2, 0)                     # release of torch: older ones have no row in the matrix
PYTHONS = ("3.10", "3.11", "3.12", "3.13")
# A machine on which every build could be chosen
MACHINE = (("__unix", "0"), ("__linux", "6.8"), ("__glibc", "2.39"), ("__cuda", "99"))
ARCHSPEC = {"linux-64": "x86_64_v4", "linux-aarch64": "aarch64"}
_VARIANT = re.compile(r"cuda(?P<cuda>\d+(?:\.\d+)?)|cpu")
_PYTHON = re.compile(r"py(?P<major>3)\.?(?P<minor>\d+)")


def read_live(channels: CondaChannels, names: Sequence[str], platforms: Sequence[str], date: str,
              tell: Callable[[str], None]) -> Made:
    """The records of these channels, in the order of their priority. Raises Unreachable."""
    kept: dict[tuple[str, str], dict[str, Row]] = {}
    by_url = {channels.named(name).url: name for name in names}
    for platform in platforms:
        for group in groups_of(names):
            found = tuple(channels.named(name) for name in group)
            for record in _chosen(channels, found, platform, tell):
                place = by_url[record.channel], record.subdir
                kept.setdefault(place, {})[record.file_name] = row_of(record)
    subdirs = (Subdir(channel=channel, subdir=subdir, rows=rows) for (channel, subdir), rows in sorted(kept.items()))
    return Made(date=date, source=f"{', '.join(names)} as they were", subdirs=tuple(subdirs), inferred={},
                winners="py-rattler chose it for a stack with torch")


def groups_of(names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Channels that are solved together: the last one alone, and all, which is what its users name."""
    return (tuple(names[-1:]),) if len(names) == 1 else (tuple(names[-1:]), tuple(names))


def _chosen(channels: CondaChannels, group: tuple[Channel, ...], platform: str,
            tell: Callable[[str], None]) -> Iterator[CondaRecord]:
    """The records of all answers of one group of channels: Pythons for wheels, then the stacks of torch."""
    for minor in PYTHONS:
        yield from _solved(channels, group[-1:], platform, (f"python {minor}.*", "pip"))
    for torch in builds(channels.records(group[:1], platform, TORCH)):
        pin = f"{TORCH} =={torch.version} {torch.build}"
        alone = _solved(channels, group, platform, (pin,))
        tell(f"{platform}: {group[0].name}: torch {torch.version} {torch.build}: {len(alone)} records")
        yield from alone
        for companion in COMPANIONS if alone else ():
            yield from _solved(channels, group, platform, (pin, companion))


def builds(records: Sequence[CondaRecord]) -> tuple[CondaRecord, ...]:
    """Of each release, CUDA variant and Python of torch the newest build."""
    found: dict[tuple[str, str, str], CondaRecord] = {}
    for record in sorted(records, key=lambda each: (each.build_number, each.timestamp or 0, each.build)):
        variant, python = _VARIANT.search(record.build), _PYTHON.search(record.build)
        release = tuple(int(part) for part in re.findall(r"\d+", record.version)[:2])
        minor = f"{python['major']}.{python['minor']}" if python else ""
        if variant is not None and release >= OLDEST and minor in {"", *PYTHONS}:
            found[record.version, variant[0], minor] = record
    return tuple(found[key] for key in sorted(found))


def _solved(channels: CondaChannels, group: tuple[Channel, ...], platform: str,
            specs: tuple[str, ...]) -> tuple[CondaRecord, ...]:
    """The answer, strictly by channel where it holds, else by any; () where there is none."""
    machine = (*(VirtualPackage(name=name, version=version) for name, version in MACHINE),
               VirtualPackage(name="__archspec", version="1", build=ARCHSPEC[platform]))
    for priority in ("strict", "disabled") if len(group) > 1 else ("strict",):
        answer = channels.solve(CondaAsk(
            platform=platform, channels=group, virtual=machine, priority=priority,
            specs=tuple(Spec(text=spec, origin="snapshot") for spec in specs)))
        if isinstance(answer, CondaSolved):
            return answer.records
    return ()


def row_of(record: CondaRecord) -> Row:
    """The record as repodata.json has it."""
    row: dict[str, Any] = {
        "name": record.name, "version": record.version, "build": record.build, "build_number": record.build_number,
        "subdir": record.subdir, "depends": list(record.depends)}
    optional = {
        "md5": record.md5, "sha256": record.sha256, "constrains": list(record.constrains), "noarch": record.noarch,
        "size": record.size, "timestamp": record.timestamp, "license": record.license,
        "license_family": record.license_family, "features": record.features,
        "track_features": " ".join(record.track_features),
        "python_site_packages_path": record.python_site_packages_path}
    return row | {key: value for key, value in optional.items() if value}
