"""Whether this machine offers what locked packages need of it: the virtual packages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from stackfix.sync.errors import LockDoesNotFit
from stackfix.sync.records import Unpacked
from stackfix.write.records import CondaLockFile, CondaPin

if TYPE_CHECKING:
    from rattler import MatchSpec, PackageRecord

ONLY_TOLD = frozenset({"__cuda", "__archspec"})     # an image for GPU hosts is made on machines without any


def this_platform() -> str:
    """`linux-64`."""
    from rattler import Subdir

    return str(Subdir.current())


def detected() -> dict[str, PackageRecord]:
    """Name -> virtual package of this machine, CONDA_OVERRIDE_… taken into account as conda does."""
    from rattler import PackageRecord, VirtualPackage, VirtualPackageOverrides

    found = {}
    for one in VirtualPackage.detect(VirtualPackageOverrides.from_env()):
        generic = one.into_generic()
        name = generic.name.source
        found[name] = PackageRecord(name, str(generic.version), generic.build_string, 0, "noarch")
    return found


def refuse_old_machine(
    lock: CondaLockFile, name: str, needs: Iterable[tuple[str, str]], offered: Mapping[str, PackageRecord],
) -> tuple[str, ...]:
    """What is told of needs that are not met. Raises LockDoesNotFit where nothing of it could run.

    `needs`: (package, what it needs). A lock of ours also names the oldest glibc.
    """
    from rattler.exceptions import InvalidMatchSpecError

    told: dict[str, str] = {}
    own = [(f"the lock {name}", f"__glibc >={lock.glibc}")] if lock.glibc else []
    for package, need in (*own, *needs):
        virtual = need.partition(" ")[0]
        here = offered.get(virtual)
        try:
            met = here is not None and spec(need).matches(here)
        except InvalidMatchSpecError:
            continue
        if met:
            continue
        has = f"{virtual} {here.version}" if here is not None else f"no {virtual}"
        if virtual not in ONLY_TOLD:
            raise LockDoesNotFit(lock=name, locked_for=f"machines with {need} ({package})",
                                 environment=f"on a machine with {has}")
        told.setdefault(virtual, f"{package} needs {need}, this machine has {has}: it is installed for another machine")
    return tuple(told.values())


def spec(text: str) -> MatchSpec:
    """The MatchSpec."""
    from rattler import MatchSpec

    return MatchSpec(text)


def needs_of(packages: Iterable[tuple[CondaPin, Unpacked]], *, from_lock: bool) -> Iterator[tuple[str, str]]:
    """(package, need) of every virtual package that these need."""
    for pin, package in packages:
        stated = pin.depends if from_lock else package.index.get("depends")
        for need in stated if isinstance(stated, (list, tuple)) else ():
            if isinstance(need, str) and need.startswith("__"):
                yield f"{pin.name} {pin.version}", need
