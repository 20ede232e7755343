"""Another build of torch with all that it needs, as `stackfix lock` decides it: what is installed and fits is kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

from stackfix.diagnose.situation import View
from stackfix.plan.install_choice import Wanted
from stackfix.resolve.records import LockedPackage, StackRequest
from stackfix.resolve.target import TargetView

if TYPE_CHECKING:
    from stackfix.cli.common import CommonOptions
    from stackfix.cli.progress import Bars
    from stackfix.sources.index import PackageIndex


def packages_for(view: View, wanted: Wanted, target: TargetView, index: PackageIndex, common: CommonOptions,
                 bars: Bars) -> Iterator[LockedPackage]:
    """torch first, then what it lacks here. Raises NoConsistentStack, and what the index raises."""
    from stackfix.cli.wiring import index_settings, open_release_source
    from stackfix.resolve.decide import decide

    installed = tuple((each.name, each.version) for each in view.distributions.values()
                      if each.name != wanted.project and each.manager == "pip")
    request = StackRequest(
        torch=wanted.specifier, cuda=wanted.cuda, pythons=(target.target.python,), glibc=target.target.glibc,
        platforms=(target.target.platform,), no_flash_attn=True, kept=installed)
    settings = index_settings(index_url=None, extra_index_urls=())
    with closing(open_release_source(None, view.matrix.sources, settings, common, bars)) as releases:
        lock = decide(request, view.matrix, index, releases, command=lambda _: "", books=view.books)
    there = {(name, version.partition("+")[0]) for name, version in installed}
    packages = [each for each in lock.targets[0].packages if each.step == 1
                and (each.name, each.version.partition("+")[0]) not in there]
    yield from sorted(packages, key=lambda each: (each.name != wanted.project, each.name))
