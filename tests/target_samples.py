"""Locks of several targets built by hand, of real tiny wheels that a loopback index serves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

from stackfix.platforms import platform_of_wheel
from stackfix.resolve.records import LockedPackage, Target, TargetLock
from stackfix.resolve.target import TargetView
from tests.lock_samples import HERE, index_file, package, target_lock
from tests.replay.wheels import make_wheel

PYTHONS = ("3.11", "3.12")
PLACES = ("linux-64", "linux-aarch64", "win-64", "osx-arm64")
WHEEL_TAGS = {"linux-64": "manylinux_2_28_x86_64", "linux-aarch64": "manylinux_2_28_aarch64", "win-64": "win_amd64",
              "osx-arm64": "macosx_11_0_arm64"}
BUILDS = {"linux-64": "+cu128", "linux-aarch64": "+cu128", "win-64": "+cu128", "osx-arm64": ""}
OLDER, NEWER = "1.26.4", "2.1.0"        # of a project that has another version on Python 3.11


def compiled(name: str, version: str, python: str, platform: str) -> str:
    """A wheel's file name."""
    tag = f"cp{python.replace('.', '')}"
    return f"{name}-{version}-{tag}-{tag}-{WHEEL_TAGS[platform]}.whl"


def _projects() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """(project, file, what it requires)."""
    for python in sorted({*PYTHONS, HERE.python}):      # also where it runs, to be installed there
        for platform in PLACES:
            torch = ("pure>=1", "shared", *(("only-linux",) if platform.startswith("linux") else ()))
            yield "torch", compiled("torch", f"2.8.0{BUILDS[platform]}", python, platform), torch
            yield "torch", compiled("torch", "2.8.0", python, platform), torch
            yield "torch", compiled("torch", "2.8.0+cpu", python, platform), torch
            yield "shared", compiled("shared", "3.0", python, platform), ("varied",)
            for version in (OLDER, NEWER):
                yield "varied", compiled("varied", version, python, platform), ()
    yield "pure", "pure-1.0-py3-none-any.whl", ("varied",)
    yield "only-linux", "only_linux-1.0-py3-none-manylinux_2_17_x86_64.whl", ()
    yield "only-linux", "only_linux-1.0-py3-none-manylinux_2_17_aarch64.whl", ()


REQUIRES = {file: requires for _, file, requires in _projects()}
PROJECTS: dict[str, dict[str, bytes]] = {}
for _project, _file, _requires in _projects():
    PROJECTS.setdefault(_project, {})[_file] = make_wheel(_file, requires=list(_requires))


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Locks whose addresses lead below `base`."""

    base: str = "https://files.example"

    def pin(self, target: Target, name: str, version: str, *, direct: bool = False) -> LockedPackage:
        """All files of the version that fit the target, best first."""
        view = TargetView(target)
        ranked = sorted((rank, file) for file in PROJECTS[name] if file.split("-")[1] == version
                        and (rank := view.rank(file)) is not None)
        files = tuple(index_file(name, file, PROJECTS[name][file], url=f"{self.base}/files/{name}/{quote(file)}")
                      for _, file in ranked)
        requires = tuple(text.partition(">")[0] for text in REQUIRES[files[0].filename])
        return package(name, version.partition("+")[0], files, requires=requires, direct=direct)

    def lock(self, target: Target) -> TargetLock:
        """torch by address where its build has a local version, one project of two versions, one of Linux alone."""
        build = "+cpu" if target.variant and target.platform != "osx-arm64" else BUILDS[target.platform]
        linux = (self.pin(target, "only-linux", "1.0"),) if target.platform.startswith("linux") else ()
        return target_lock((*linux, self.pin(target, "pure", "1.0"), self.pin(target, "shared", "3.0"),
                            self.pin(target, "torch", f"2.8.0{build}", direct=bool(build)),
                            self.pin(target, "varied", OLDER if target.python == "3.11" else NEWER)), target)


def target_of(python: str, place: str) -> Target:
    """`linux-64-cpu` is the CPU build on that platform."""
    platform, variant = (place[:-4], "cpu") if place.endswith("-cpu") else (place, "")
    return Target(python=python, platform=platform, glibc="2.28", variant=variant)


def fits(file: str, target: Target) -> bool:
    """Whether the file's platform is the target's, or any."""
    return platform_of_wheel(file) in {None, target.platform}
