"""The environment that a lock will make, as records: what an inspection would say of it once it is installed."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from stackfix.inspect.environment_records import (
    Copies,
    Distribution,
    Environment,
    FileClaim,
    Owner,
    Python,
    SharedFile,
    SharedObject,
    SiteFolder,
)
from stackfix.inspect.machine_records import Driver, Machine, SystemLibrary
from stackfix.inspect.object_names import library_folders, module_of
from stackfix.inspect.records import ElfObject
from stackfix.prove.base import FOLDER, Base
from stackfix.prove.records import WheelTables
from stackfix.prove.tree import Layout

MANAGER = "pip"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """Fills situation.Owners: whose file lies at a path."""

    by_path: Mapping[str, tuple[Owner, ...]]

    def owners(self, path: str) -> tuple[Owner, ...]:
        return self.by_path.get(path, ())


def claims_of(wheels: Iterable[WheelTables], layout: Layout) -> Claims:
    """The owners of every file that is known to be installed."""
    found: dict[str, dict[Owner, None]] = defaultdict(dict)
    for each in wheels:
        owner = owner_of(each)
        for path in (*(each.listing or ()), *(library.path for library in each.libraries)):
            place = layout.place(path)
            if place is not None:
                found[place].setdefault(owner)
    # of two wheels the later one is laid over the other
    return Claims(by_path={path: tuple(owners)[::-1] for path, owners in found.items()})


def owner_of(wheel: WheelTables) -> Owner:
    return Owner(manager=MANAGER, name=wheel.project.name, version=wheel.project.version)


def environment_of(wheels: Iterable[WheelTables], layout: Layout, claims: Claims, *, platform: str) -> Environment:
    """What an inspection of the installed stack would give."""
    known = sorted(wheels, key=lambda each: each.project.name)
    elves = {place: each.elf for wheel in known for each in wheel.libraries
             if (place := layout.place(each.path)) is not None}
    objects = tuple(shared_object(place, elf.size if isinstance(elf, ElfObject) else 0, layout, claims)
                    for place, elf in sorted(elves.items()))
    return Environment(
        prefix=layout.prefix, found_via="lock", venv=None, conda=None, path_files=(), editables=(),
        python=python_of(layout, platform), copies=tuple[Copies, ...](),
        sites=(SiteFolder(path=layout.site, kind="environment", base=layout.prefix, exists=True),),
        distributions=tuple(distribution_of(each, layout) for each in known),
        shared_objects=objects, library_folders=library_folders(objects), shared_files=tuple(shared(claims)),
        file_faults=(), activation=(), kernels=(), notes=(),
    )


def shared(claims: Claims) -> Iterable[SharedFile]:
    """Shared objects that two wheels would write. Which content stays depends on the installer."""
    for path, owners in sorted(claims.by_path.items()):
        if len(owners) > 1 and ".so" in path.rpartition("/")[2]:
            yield SharedFile(path=path, same=False, claims=tuple(
                FileClaim(owner=each, size=None, sha256=None) for each in owners))


def python_of(layout: Layout, platform: str) -> Python:
    return Python(
        minor=layout.python, version=None, implementation="cpython", free_threaded=False,
        executable=layout.executable, executable_reaches=layout.executable, base_prefix=layout.prefix,
        standard_library=f"{layout.prefix}/lib/python{layout.python}", platform=platform, externally_managed=False)


def distribution_of(wheel: WheelTables, layout: Layout) -> Distribution:
    """As its dist-info would be read."""
    project = wheel.project
    folder = f"{re.sub(r'[-_.]+', '_', project.spelling)}-{project.version}.dist-info"
    return Distribution(
        name=project.name, spelling=project.spelling, version=project.version, metadata=f"{layout.site}/{folder}",
        site=layout.site, kind="dist-info", requires=project.requires, requires_python=project.requires_python,
        extras=project.extras, tags=project.tags, build=None, generator=None, installer=None, requested=False,
        origin=None, record=True, manager=MANAGER, conda_package=None)


def shared_object(path: str, size: int, layout: Layout, claims: Claims) -> SharedObject:
    inside = path.startswith(f"{layout.site}/")
    module, tag = module_of(path[len(layout.site) + 1:]) if inside else (None, None)
    return SharedObject(path=path, size=size, link=None, owners=claims.owners(path), module=module, tag=tag)


def machine_of(base: Base) -> Machine:
    """A machine that has the target's glibc, and of which nothing else is known."""
    newest = tuple((prefix, ".".join(map(str, parts))) for prefix, parts in sorted(base.newest.items()))
    libraries = {soname: SystemLibrary(soname=soname, path=f"{FOLDER}/{soname}", real_path=f"{FOLDER}/{soname}",
                                       version=base.glibc if soname == "libc.so.6" else None, newest=newest)
                 for soname in ("libc.so.6", "libstdc++.so.6", "libgcc_s.so.1")}
    return Machine(
        live=False, architecture=base.machine, kernel=None, libc="glibc", glibc=libraries["libc.so.6"],
        libstdcxx=libraries["libstdc++.so.6"], libgcc=libraries["libgcc_s.so.1"], release=None, wsl=None, jetson=None,
        container=None, modules=(), slurm_job=None, toolkits=(), cudnn=(), variables=(), undecided=(),
        driver=Driver(kernel_module=None, nouveau=False, libraries=(), devices=(), gpus=(), pci=(), mig_instances=()))
