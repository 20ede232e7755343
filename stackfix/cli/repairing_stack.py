"""What `stackfix lock` decides for an environment: another build of torch, or the releases that go with its own."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from stackfix.diagnose.installed_torch import installed_torch
from stackfix.diagnose.situation import View
from stackfix.errors import StackfixError
from stackfix.plan.install_choice import Wanted
from stackfix.resolve.records import LockedPackage, Requirement, StackRequest
from stackfix.resolve.target import TargetView

if TYPE_CHECKING:
    from stackfix.cli.common import CommonOptions
    from stackfix.cli.progress import Bars
    from stackfix.sources.index import PackageIndex

FLASH, TORCH = "flash-attn", "torch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """Whom a lock is asked of, and for what environment."""

    view: View
    target: TargetView
    index: PackageIndex
    common: CommonOptions
    bars: Bars

    def decide(self, torch: str, cuda: str, renewed: Sequence[str] = (),
               requirements: Sequence[Requirement] = ()) -> tuple[LockedPackage, ...]:
        """The packages of a lock that keeps what is installed, as far as it fits, but for `renewed`.

        Raises NoConsistentStack, and what the index raises.
        """
        from stackfix.cli.wiring import index_settings, open_release_source
        from stackfix.resolve.decide import decide

        target, matrix = self.target.target, self.view.matrix
        kept = tuple((name, version) for name, version in installed(self.view) if name not in {TORCH, *renewed})
        request = StackRequest(
            torch=torch, cuda=cuda, pythons=(target.python,), glibc=target.glibc, platforms=(target.platform,),
            no_flash_attn=FLASH not in renewed, kept=kept, requirements=tuple(requirements))
        settings = index_settings(index_url=None, extra_index_urls=())
        with closing(open_release_source(None, matrix.sources, settings, self.common, self.bars)) as releases:
            lock = decide(request, matrix, self.index, releases, command=lambda _: "", books=self.view.books)
        return tuple(each for each in lock.targets[0].packages if each.step == 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """What a lock of the environment's own torch says of some projects."""

    sets: tuple[tuple[LockedPackage, ...], ...] = ()    # each would do by itself, the smallest first
    why: str = ""                   # these releases
    why_not: str                    # other ones


def installed(view: View) -> tuple[tuple[str, str], ...]:
    """(project, version) of what installers of wheels have put there."""
    return tuple((each.name, each.version) for each in view.distributions.values() if each.manager == "pip")


def packages_for(asking: Asking, wanted: Wanted) -> Iterator[LockedPackage]:
    """Another build of torch first, then what it lacks here. Raises NoConsistentStack, and what the index raises."""
    packages = asking.decide(wanted.specifier, wanted.cuda or "")
    there = {(name, version.partition("+")[0]) for name, version in installed(asking.view) if name != wanted.project}
    lacking = [each for each in packages if (each.name, each.version.partition("+")[0]) not in there]
    yield from sorted(lacking, key=lambda each: (each.name != wanted.project, each.name))


def own_stack(asking: Asking, wanted: Sequence[Wanted]) -> Own:
    """The releases of these projects that go with the torch that is there: they alone, then with what they lack."""
    torch = installed_torch(asking.view)
    if torch is None:
        return Own(why_not="there is no torch here by which `stackfix lock` could choose")
    command = f"stackfix lock --torch {torch.release}{f' --cuda {torch.cuda}' if torch.cuda else ''}"
    if torch.cuda is None:
        return Own(why_not=f"`{command}` cannot choose, as the CUDA of this torch is not known")
    projects, requirements = [each.project for each in wanted], list[Requirement]()
    try:
        packages = asking.decide(f"=={torch.release}", torch.cuda, projects)
        lacking = sorted(set(projects) - {each.name for each in packages} - {FLASH})
        if lacking:
            texts = [f"{each.project}{each.within or ''}" for each in wanted if each.project in lacking]
            requirements = [Requirement(text=each, origin=f"--with {each}") for each in texts]
            command += "".join(f" --with {shlex.quote(each)}" for each in texts)
            packages = asking.decide(f"=={torch.release}", torch.cuda, projects, requirements)
    except StackfixError:
        return Own(why_not=f"`{command}` gives no answer for this environment")
    return Own(sets=tuple(sets_of(asking.view, wanted, packages)), why=f"as `{command}` chooses it",
               why_not=f"what `{command}` chooses does not do here")


def sets_of(view: View, wanted: Sequence[Wanted],
            packages: Sequence[LockedPackage]) -> Iterator[tuple[LockedPackage, ...]]:
    """What is wanted, where the lock has all of it in releases that would do; then with what these require and lack."""
    found = {each.name: each for each in packages}
    alone = [found[each.project] for each in wanted if each.project in found and would_do(each, found[each.project])]
    if len(alone) < len(wanted):
        return
    yield tuple(alone)
    names, ahead = {each.name for each in alone}, list(alone)
    there = {(name, version.partition("+")[0]) for name, version in installed(view)}
    more = list[LockedPackage]()
    while ahead:
        for name in ahead.pop(0).requires:
            each = found.get(name)
            if each is not None and name not in names and name != TORCH:
                names.add(name)
                ahead.append(each)
                if (name, each.version.partition("+")[0]) not in there:
                    more.append(each)
    if more:
        yield (*alone, *sorted(more, key=lambda each: each.name))


def would_do(wanted: Wanted, package: LockedPackage) -> bool:
    """Whether it is another release than the one that is there, and one that the finding admits."""
    try:
        admitted = SpecifierSet(wanted.within or "").contains(package.version, prereleases=True)
    except InvalidSpecifier:
        return False
    return admitted and bool(package.files) and package.version != (wanted.near or "").partition("+")[0]
