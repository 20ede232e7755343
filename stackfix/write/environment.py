"""One target as `environment.yml`: every package pinned by version and build, pip's by hash too."""

from __future__ import annotations

import re

from stackfix.conda.records import Channel, CondaRecord, CondaTarget
from stackfix.resolve.records import LockedPackage
from stackfix.write.clean import locked_sha256, locked_url
from stackfix.write.conda_clean import check_records, conda_url, package_url
from stackfix.write.conda_header import conda_header
from stackfix.write.yaml_text import scalar

PLAIN_CHANNEL = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
NO_HASHES = "# the hashes of conda packages have no place in environment.yml: the other lockfiles have them"


def render_environment(
    target: CondaTarget, *, command: str, file_name: str = "environment.yml", second_steps: tuple[str, ...] = (),
) -> str:
    """The file's text. `second_steps`: names of files to install afterwards."""
    check_records(target)
    header = conda_header((target,), command=command, use=f"conda env create --file {file_name} --prefix PREFIX",
                          second_steps=second_steps)
    lines = [*header[:-1], NO_HASHES, "#", "channels:",
             *(f"- {scalar(channel_name(channel))}" for channel in target.channels),
             "- nodefaults", "dependencies:",
             *(f"- {scalar(conda_requirement(record, target.channels))}" for record in target.records)]
    pip = pip_requirements(target)
    if pip:
        lines += ["- pip:", *(f"  - {scalar(line)}" for line in pip)]
    return "\n".join(lines) + "\n"


def channel_name(channel: Channel) -> str:
    """What a file calls the channel: its name, or its address without credentials."""
    return conda_url(channel.url) if "/" in channel.name and ":" in channel.name else channel.name


def conda_requirement(record: CondaRecord, channels: tuple[Channel, ...]) -> str:
    """`conda-forge::numpy=1.26.4=py311h64a7726_0`; the channel where there are several and it has a plain name.

    With the channel named, strict priority does not hide a package that a channel of higher priority has as well.
    """
    package_url(record)
    pin = f"{record.name}={record.version}={record.build}"
    name = next((channel.name for channel in channels
                 if channel.url.rstrip("/") == record.channel.rstrip("/")), "")
    return f"{name}::{pin}" if len(channels) > 1 and PLAIN_CHANNEL.fullmatch(name) else pin


def pip_requirements(target: CondaTarget) -> tuple[str, ...]:
    """Lines of the pip section, sorted by name, without the second step."""
    return tuple(pip_requirement(package) for package in pip_packages(target))


def pip_packages(target: CondaTarget) -> tuple[LockedPackage, ...]:
    """Packages that pip installs in the first step, sorted by name."""
    return tuple(sorted((package for package in target.pip if package.step == 1), key=lambda package: package.name))


def pip_requirement(package: LockedPackage) -> str:
    """`name==version --hash=sha256:…`, or `name @ URL#sha256=…`: conda hands the section to pip as requirements.

    One hash, of the file that pip picks for the target: conda-lock's own reader takes no line with two.
    """
    file = package.files[0]
    extras = f"[{','.join(sorted(set(package.extras)))}]" if package.extras else ""
    if package.direct:
        return f"{package.name}{extras} @ {locked_url(file.url)}#sha256={locked_sha256(file)}"
    return f"{package.name}{extras}=={package.version} --hash=sha256:{locked_sha256(file)}"
