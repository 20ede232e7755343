"""An environment as a side of `stackfix diff`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from stackfix.cli.diff_held import conda_held, key_book
from stackfix.errors import BadInput

if TYPE_CHECKING:
    from stackfix.write.records import HeldTarget

TAG = re.compile(r"^Tag:[ \t]*(?P<tag>\S+)[ \t]*\r?$", re.MULTILINE)


def read_environment(prefix: Path) -> HeldTarget:
    """What a folder holds: conda-meta and site-packages, read as files. Raises BadInput where it is no environment."""
    from stackfix.sync.conda_prefix import META, read_conda_installed, refuse_two_records
    from stackfix.sync.installed import read_record as read_installed_record
    from stackfix.sync.installed import records_in
    from stackfix.write.difference import key_of
    from stackfix.write.records import CondaPin, Held, HeldTarget

    sites = sorted(prefix.glob("lib/python3*/site-packages"))
    if not (prefix / META).is_dir() and not sites:
        raise BadInput(str(prefix), "is no environment: it has neither conda-meta nor lib/python3.*/site-packages",
                       "name a lockfile, or the folder of an environment")
    linked = read_conda_installed(prefix)
    refuse_two_records(prefix, linked, frozenset())
    owned = {path for one in linked.values() for path in one.files}
    pins = [CondaPin(name=one.name, version=one.version, build=one.build, platform=one.subdir or "", subdir=one.subdir,
                     channel=one.channel, file_name=None, url=one.url, md5=one.md5, sha256=one.sha256,
                     noarch="python" if has_metadata(one.files) else None) for one in linked.values()]
    held: dict[str, Held] = {}
    python = minor_of(linked["python"].version) if "python" in linked else (
        minor_of(sites[0].parent.name.removeprefix("python")) if sites else None)
    for site in sites:
        if minor_of(site.parent.name.removeprefix("python")) != python:
            continue            # left of an earlier Python: this one does not see it
        for path in records_in(site):
            relative = str(path.relative_to(prefix))
            found = None if owned & {relative, f"{relative}/METADATA", f"{relative}/PKG-INFO"} else (
                read_installed_record(path))
            if found is not None:
                held.setdefault(found.name, Held(name=found.name, key=key_of(found.name), manager="pip",
                                                 version=found.version, source=None))
    subdirs = {one.subdir for one in linked.values()} - {None, "noarch"}
    platform = next(iter(sorted(filter(None, subdirs))), None) or platform_of(path for site in sites
                                                                              for path in records_in(site))
    return HeldTarget(python=python, platform=platform,
                      packages=(*conda_held(pins, key_book()), *held.values()))


def platform_of(records: Iterable[Path]) -> str | None:
    """The platform that installed wheels are for, by the first whose tag names one."""
    from stackfix.platforms import platform_of_wheel
    from stackfix.sync.installed import text_of

    tags = (match["tag"] for path in records for match in TAG.finditer(text_of(path / "WHEEL")))
    return next((found for tag in tags if (found := platform_of_wheel(f"x-1-{tag}.whl"))), None)


def minor_of(version: str) -> str:
    """`3.13` of `3.13.2`, and of the `3.13t` of a build without the global lock."""
    return ".".join(version.rstrip("t").split(".")[:2])


def has_metadata(files: Iterable[str]) -> bool:
    """Whether a package brings a Python project."""
    return any(".dist-info/" in path or ".egg-info" in path for path in files)
