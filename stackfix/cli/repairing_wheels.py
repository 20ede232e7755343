"""Wheels that a plan of repairs may install: of the user's package index, and flash-attn's of its release source."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.version import Version

from stackfix.cli.common import CommonOptions
from stackfix.cli.repairing_conda import CondaChoices, programs_at_hand
from stackfix.cli.repairing_download import fetch_file
from stackfix.cli.repairing_nearest import nearest
from stackfix.diagnose.situation import View
from stackfix.errors import StackfixError
from stackfix.plan.install_choice import Offers, Wanted, unreached_by
from stackfix.plan.records import Install, InstallWheel
from stackfix.plan.rules_conda import Program, WantedConda
from stackfix.platforms import LINUX, PLATFORMS
from stackfix.quick import replace
from stackfix.resolve.records import LockedPackage, ProjectPage, Target
from stackfix.resolve.target import TargetView
from stackfix.sources.records import IndexFile

if TYPE_CHECKING:
    from stackfix.cli.progress import Bars
    from stackfix.cli.repairing_stack import Asking, Own
    from stackfix.sources.index import PackageIndex

FLASH, TORCH = "flash-attn", "torch"
MOST = 3                        # releases of one project that are tried: each has to be downloaded


def target_of(view: View) -> TargetView | None:
    """What installers of the environment take; None where its Python, platform or glibc is not known or not served."""
    python, glibc = view.environment.python, view.machine.glibc
    if python is None or glibc is None or glibc.version is None or python.free_threaded or \
            python.implementation != "cpython":
        return None
    by_machine = {PLATFORMS[platform].machine: platform for platform in LINUX}
    platform = python.platform or by_machine.get(view.machine.architecture or "")
    if platform not in LINUX:
        return None
    return TargetView(Target(python=python.minor, platform=platform, glibc=glibc.version))


class IndexChoices:
    """Fills plan.install_choice.Choices; a context manager. The index is asked only when something is wanted."""

    def __init__(self, view: View, common: CommonOptions, bars: Bars) -> None:
        self._view, self._common, self._bars = view, common, bars
        self._opened = ExitStack()
        self._index: PackageIndex | None = None
        self._conda = CondaChoices(view, os.environ, offline=common.offline)
        self._files: dict[str, IndexFile] = {}          # by sha256
        self._own: dict[tuple[tuple[str, str | None], ...], Own] = {}

    def __enter__(self) -> IndexChoices:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def offers(self, wanted: tuple[Wanted, ...]) -> Offers:
        """What a lock of the environment's own torch chooses; then what is nearest to what is there."""
        target = target_of(self._view)
        if target is None:
            return Offers(reason="which wheels this environment's Python takes is not known")
        if [each.project for each in wanted] == [TORCH] and wanted[0].cuda is not None:
            return self._stack(wanted[0], target)
        near = self._nearest(wanted, target)
        if any(each.within is None for each in wanted):         # the file of this very release
            return near
        own = self._own_stack(wanted, target)
        sets = list[tuple[Install, ...]](self._locked(own))
        locked = {files_of(each) for each in sets}
        sets += [tuple(replace(wheel, why=own.why_not) for wheel in each) for each in near.sets
                 if files_of(each) not in locked]
        return near if not sets else Offers(sets=tuple(sets))

    def pinned(self) -> tuple[Wanted, ...]:
        """There is no lockfile."""
        return ()

    def lock(self) -> str | None:
        return None

    def conda_programs(self) -> tuple[Program, ...]:
        return programs_at_hand(os.environ)

    def of_conda(self, wanted: WantedConda) -> Offers:
        """What conda itself would bring."""
        return self._conda.offers(wanted)

    def _nearest(self, wanted: tuple[Wanted, ...], target: TargetView) -> Offers:
        """Releases of the first project that fit, nearest first, each with the nearest of the others."""
        found = list[list[InstallWheel]]()
        for each in wanted:
            try:
                wheels = list(self._wheels(each, target))
            except StackfixError as error:
                return Offers(reason=error.what(), unreached=unreached_by(error))
            if not wheels:
                has = f"CPython {target.target.python} on {target.target.platform} with glibc {target.target.glibc}"
                return Offers(reason=f"there is no wheel of {each.project}{each.specifier} for {has}")
            found.append(wheels)
        rest = tuple(wheels[0] for wheels in found[1:])
        return Offers(sets=tuple((each, *rest) for each in found[0][:MOST]))

    def _own_stack(self, wanted: tuple[Wanted, ...], target: TargetView) -> Own:
        """Decided once for the same projects."""
        from stackfix.cli.repairing_stack import own_stack

        key = tuple((each.project, each.within) for each in wanted)
        if key not in self._own:
            self._own[key] = own_stack(self._asking(target), wanted)
        return self._own[key]

    def _locked(self, own: Own) -> Iterator[tuple[InstallWheel, ...]]:
        for each in own.sets:
            yield tuple(self._locked_wheel(package, own.why) for package in each)

    def _locked_wheel(self, package: LockedPackage, why: str) -> InstallWheel:
        return replace(self.wheel(package.name, package.files[0], direct=package.direct), why=why)

    def _asking(self, target: TargetView) -> Asking:
        from stackfix.cli.repairing_stack import Asking

        return Asking(view=self._view, target=target, index=self._opened_index(), common=self._common,
                      bars=self._bars)

    def fetch(self, wheel: InstallWheel) -> Path:
        """The wheel's file in the cache, its hash checked. Raises Unreachable, HashMismatch, NotAllowedOffline."""
        file = self._files[wheel.sha256]
        return fetch_file(file, self._opened_index().transport, self._common.cache_dir, self._bars.download,
                          offline=self._common.offline)

    def page(self, project: str) -> ProjectPage:
        """What the index has of a project. Raises NoSuchProject, Unreachable."""
        return self._opened_index().page(project)

    def _stack(self, wanted: Wanted, target: TargetView) -> Offers:
        """Another torch with all that it lacks here, in one set."""
        from stackfix.cli.repairing_stack import packages_for

        try:
            packages = tuple(packages_for(self._asking(target), wanted))
        except StackfixError as error:
            return Offers(reason=error.what(), unreached=unreached_by(error))
        why = f"as `stackfix lock --torch {wanted.specifier.lstrip('=')} --cuda {wanted.cuda}` chooses it"
        return Offers(sets=(tuple(self._locked_wheel(each, why) for each in packages),))

    def _wheels(self, wanted: Wanted, target: TargetView) -> Iterator[InstallWheel]:
        if wanted.project == FLASH:
            yield from self._flash_attn(wanted, target)
            return
        page = self.page(wanted.project)
        for version in nearest(page.version_strings(), wanted):
            fitting = [(rank, each) for each in page.files(version)
                       if each.is_wheel and each.sha256 is not None and each.yanked is None
                       and target.takes_python(each.requires_python)
                       and (rank := target.rank(each.filename)) is not None]
            if fitting:
                yield self.wheel(wanted.project, min(fitting, key=lambda each: each[0])[1])

    def _flash_attn(self, wanted: Wanted, target: TargetView) -> Iterator[InstallWheel]:
        """Of the release source: wheels built for the installed torch, whose address and hash the matrix has."""
        from stackfix.diagnose.abi_cures import builds_of
        from stackfix.diagnose.installed_torch import installed_torch
        from stackfix.matrix.query import flash_attn_wheels_for

        torch = installed_torch(self._view)
        builds = builds_of(self._view, torch) if torch is not None else []
        rows = [each for build in builds for each in flash_attn_wheels_for(
            self._view.matrix, build, target.target.python, target.target.platform)]
        for version in nearest(tuple(dict.fromkeys(each.version for each in rows)), wanted):
            row = next((each for each in rows if each.version == version and each.sha256 is not None
                        and target.rank(each.file) is not None), None)
            if row is not None and row.sha256 is not None:
                base = self._view.matrix.sources.release_download.rstrip("/")
                file = IndexFile(
                    project=FLASH, filename=row.file, version=version, sha256=row.sha256, requires_python=None,
                    url=f"{base}/v{version}/{row.file.replace('+', '%2B')}", yanked=None, size=None, upload_time=None,
                    core_metadata=None, index=base)
                yield self.wheel(FLASH, file, direct=True)

    def wheel(self, project: str, file: IndexFile, *, direct: bool = False) -> InstallWheel:
        """The record of a file."""
        environment = self._view.environment
        here = [each for each in environment.distributions
                if each.name == project and each.site.startswith(f"{environment.prefix}/")]
        own = next((each.path for each in environment.sites if each.kind == "environment"
                    and each.path.startswith(f"{environment.prefix}/")), environment.prefix)
        site = here[0].site if here else own
        sha256 = file.sha256 or ""
        self._files[sha256] = file
        version = str(Version(file.version)).partition("+")[0] if direct else str(Version(file.version))
        return InstallWheel(
            project=project, version=version, file=file.filename, sha256=sha256,
            source=file.url if direct else f"{project}=={version}",
            site=site[len(environment.prefix) + 1:],
            replaces=tuple(f"{each.name} {each.version}" for each in here if each.site == site))

    def _opened_index(self) -> PackageIndex:
        if self._index is None:
            from stackfix.cli.wiring import open_index

            self._index = self._opened.enter_context(
                open_index(self._common, index_url=None, extra_index_urls=()))
        return self._index


def files_of(wheels: tuple[Install, ...]) -> frozenset[str]:
    """By which a set is known."""
    return frozenset(each.sha256 for each in wheels)
