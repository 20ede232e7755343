"""Releases that would fit each other: of an extension for the torch that is there, and the reverse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from stackfix.diagnose.abi_groups import Extension
from stackfix.diagnose.abi_range import Told
from stackfix.diagnose.abi_stated import Stated, admits_minor
from stackfix.diagnose.finding_records import Install
from stackfix.diagnose.install_lines import build_line, install_line, reinstall
from stackfix.diagnose.installed_torch import InstalledTorch, numbers, platform_of
from stackfix.diagnose.releases import admits
from stackfix.diagnose.situation import View
from stackfix.matrix.records import Companion, TorchBuild

FLASH = "flash-attn"


class Way(NamedTuple):
    """One cure: the command, and what it installs."""

    line: str
    install: Install


def builds_of(view: View, torch: InstalledTorch) -> list[TorchBuild]:
    """Rows of the installed torch: of its own CUDA where that is known."""
    rows = [each for each in view.matrix.torch
            if each.version == torch.release and each.platform == platform_of(view)]
    exact = [each for each in rows if each.cuda == torch.cuda]
    return exact or [each for each in rows if torch.cuda is None or each.cuda.partition(".")[0] == torch.cuda]


def for_this_torch(view: View, extension: Extension, torch: InstalledTorch,
                   strings: str | None = None) -> Iterator[Way]:
    """Commands that bring the nearest build of the extension for the torch that is installed.

    `strings`: torch's std::string, where it is known. Wheels whose symbols were read go before what is declared.
    """
    from stackfix.abi.nearest import SYMBOLS, TorchThere, nearest_extension

    known, python, platform = extension.distribution, view.environment.python, platform_of(view)
    rows = builds_of(view, torch)
    if extension.name == FLASH:
        yield from flash_attn(view, rows, extension)
        return
    if known is None or platform is None:
        return
    companions = [each for each in view.matrix.companions
                  if each.package == extension.name and not same(extension, each.version)
                  and is_for(each, rows, torch) and has_cuda_of(view, each, torch)]
    judged = [each for each in view.books.judged.of(extension.name) if not same(extension, each.version)
              and known.manager != "conda"              # conda builds the same release anew for each torch
              and (each.declares in {None, "*"} or admits(each.declares or "", torch.release))]
    there = TorchThere(release=torch.release, string_abi=strings, cuda=torch.cuda_major, platform=platform,
                       python=python.minor if python else None)
    best = nearest_extension(extension.name, known.version, there, judged=judged, companions=companions)
    if best is not None:
        line = install_line(view, known, f"{extension.name}=={best.version}")
        yield Way(line + (f"  # its symbols are those of torch {there.minor}" if best.basis == SYMBOLS else ""),
                  installing(extension, best.version))
        return
    for version in sorted((each.version for each in companions if each.torch is None), key=numbers, reverse=True)[:1]:
        yield Way(install_line(view, known, f"{extension.name}=={version}"), installing(extension, version))


def installing(extension: Extension, version: str) -> Install:
    """A release of the extension."""
    manager = extension.distribution.manager if extension.distribution else "pip"
    return Install(package=extension.name, manager=manager, specifier=f"=={version}", version=version)


def is_for(row: Companion, rows: list[TorchBuild], torch: InstalledTorch) -> bool:
    """Whether a release is known to be for this torch."""
    from stackfix.matrix.query import companion_fits

    if row.torch is None and not is_of_release(row, torch):
        return False
    if rows:
        return any(companion_fits(row, each) is None for each in rows)
    return row.torch is None or admits(row.torch, torch.release)


def is_of_release(row: Companion, torch: InstalledTorch) -> bool:
    """Whether a release that states no torch came with this one, under its number: torchaudio does so up to 2.11."""
    return row.package == "torchaudio" and numbers(row.version)[:2] == numbers(torch.release)[:2]


def has_cuda_of(view: View, row: Companion, torch: InstalledTorch) -> bool:
    """Whether a release is for torch's CUDA major: where it does not say, for that of the index's own torch."""
    own = next((each.cuda for each in view.matrix.torch if each.version == torch.release and each.index == "default"
                and each.platform == platform_of(view)), None)
    told = row.cuda or own
    return torch.cuda_major is None or told is None or told.partition(".")[0] == str(torch.cuda_major)


def same(extension: Extension, version: str) -> bool:
    """Whether it is the release that is installed already."""
    return extension.distribution is not None and \
        extension.distribution.version.partition("+")[0] == version.partition("+")[0]


def flash_attn(view: View, rows: list[TorchBuild], extension: Extension) -> Iterator[Way]:
    """The nearest release that has a prebuilt wheel for this torch, Python and platform; a later one, if there is."""
    from stackfix.matrix.query import flash_attn_wheels_for

    python, platform = view.environment.python, platform_of(view)
    if python is None or platform is None:
        return
    wheels = [each for row in rows for each in flash_attn_wheels_for(view.matrix, row, python.minor, platform)]
    now = numbers(extension.distribution.version) if extension.distribution else ()
    later = [each for each in wheels if numbers(each.version) > now]
    best = min(later, key=lambda each: numbers(each.version), default=next(iter(wheels), None))
    if best is not None:
        row = next(each for each in rows if each.cuda)
        yield Way(f"stackfix lock --torch {row.version} --cuda {row.cuda} --flash-attn {best.version}  "
                  f"# there is {best.file}", installing(extension, best.version))


def for_the_extension(view: View, extension: Extension, stated: tuple[Stated, ...], told: Told | None,
                      torch: InstalledTorch) -> Iterator[Way]:
    """A lock of the torch that the extension was built for, the nearest to the one that is installed."""
    wanted = [each for each in stated if not admits(each.torch, torch.release)]
    if told is None or not told.range.minors:
        best = nearest_stated(view, wanted, torch)
    else:
        possible = [each for each in wanted if any(admits_minor(each, minor) for minor in told.range.minors)]
        best = nearest_shown(view, extension, possible, told, torch)
    if best is not None:
        install = Install(package="torch", manager=torch.manager, specifier=f"=={best}", version=best)
        yield Way(f"stackfix lock --torch {best}{with_extension(extension)}", install)


def nearest_stated(view: View, wanted: list[Stated], torch: InstalledTorch) -> str | None:
    """Of the releases that are stated: the newest that is older than the installed one, else the oldest."""
    from stackfix.matrix.query import torch_releases

    fitting = [each for each in torch_releases(view.matrix) if admits(wanted[0].torch, each)] if wanted else []
    older = [each for each in fitting if numbers(each) < numbers(torch.release)]
    return older[0] if older else fitting[-1] if fitting else None


def nearest_shown(view: View, extension: Extension, wanted: list[Stated], told: Told,
                  torch: InstalledTorch) -> str | None:
    """Of the releases that have all symbols, and that are stated where something is."""
    from stackfix.abi.nearest import nearest_torch

    python, platform = view.environment.python, platform_of(view)
    builds = [each for each in view.matrix.torch if each.version != torch.release
              and all(admits(one.torch, each.version) for one in wanted[:1])]
    cuda = () if extension.cuda_major is None else (extension.cuda_major,)
    best = nearest_torch(told.range, torch.release, builds, cuda=cuda, python=python.minor if python else None,
                         platform=platform or "linux-64")
    return best.version if best else None


def with_extension(extension: Extension) -> str:
    """What a lock is asked to keep of the extension."""
    if extension.distribution is None:
        return ""
    version = extension.distribution.version.partition("+")[0]
    return f" --flash-attn {version}" if extension.name == FLASH else f" --with {extension.name}=={version}"


def rebuild(view: View, extension: Extension) -> tuple[str, ...]:
    """The line that compiles the extension anew for the torch that is there; none for those that have no sources."""
    if extension.distribution is None:
        return ("compile the extension anew in this environment",)
    if extension.name.startswith("nvidia-"):                # they have no sources
        return (reinstall(view, extension.distribution),)
    if any(row.package == extension.name for row in view.matrix.companions):
        return ()
    force = "FLASH_ATTENTION_FORCE_BUILD=TRUE " if extension.distribution.name == FLASH else ""
    return (f"{force}{build_line(view, extension.distribution)}",)
