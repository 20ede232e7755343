"""Releases that would fit each other: of an extension for the torch that is there, and the reverse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from stackfix.diagnose.abi_groups import Extension
from stackfix.diagnose.abi_range import Told
from stackfix.diagnose.abi_stated import METADATA, Stated
from stackfix.diagnose.finding_records import Install
from stackfix.diagnose.install_lines import build_line, install_line, reinstall
from stackfix.diagnose.installed_torch import InstalledTorch, numbers, platform_of
from stackfix.diagnose.releases import admits
from stackfix.diagnose.situation import View
from stackfix.matrix.records import TorchBuild

if TYPE_CHECKING:
    from stackfix.abi.nearest import TorchThere
    from stackfix.diagnose.nearest_release import Known

FLASH = "flash-attn"


class Way(NamedTuple):
    """One cure: the command, and what it installs."""

    line: str
    install: Install


def builds_of(view: View, torch: InstalledTorch) -> list[TorchBuild]:
    """Rows of the installed torch: of its own CUDA where that is known."""
    from stackfix.diagnose import nearest_release

    return list(nearest_release.builds_of(view.matrix, there(view, torch), torch.cuda))


def there(view: View, torch: InstalledTorch, strings: str | None = None) -> TorchThere:
    """The installed torch, as extensions are chosen for it."""
    from stackfix.abi.nearest import TorchThere

    python = view.environment.python
    return TorchThere(release=torch.release, string_abi=strings, cuda=torch.cuda_major,
                      platform=platform_of(view) or "linux-64", python=python.minor if python else None)


def for_this_torch(view: View, extension: Extension, torch: InstalledTorch,
                   strings: str | None = None) -> Iterator[Way]:
    """The command that brings the nearest build of the extension for the torch that is installed.

    `strings`: torch's std::string, where it is known. Wheels whose symbols were read go before what is declared.
    """
    from stackfix.abi.nearest import SYMBOLS
    from stackfix.diagnose.nearest_release import Known, flash_line, nearest_release

    known = extension.distribution
    if known is None or platform_of(view) is None:
        return
    here, url = there(view, torch, strings), known.origin.url if known.origin else ""
    best = nearest_release(Known(known.name, known.version, url.rpartition("/")[2], known.manager == "conda"), here,
                           torch.cuda, view.matrix, view.books.judged.of(extension.name))
    if best is None:
        return
    line: str | None = install_line(view, known, f"{extension.name}=={best.version}")
    if extension.name == FLASH:
        line = flash_line(view.matrix, here, torch.cuda, best)
    elif best.basis == SYMBOLS:
        line = f"{line}  # its symbols are those of torch {here.minor}"
    if line is not None:
        yield Way(line, installing(extension, best.version))


def installing(extension: Extension, version: str) -> Install:
    """A release of the extension."""
    manager = extension.distribution.manager if extension.distribution else "pip"
    return Install(package=extension.name, manager=manager, specifier=f"=={version}", version=version)


def for_the_extension(view: View, extension: Extension, stated: tuple[Stated, ...], told: Told | None,
                      torch: InstalledTorch) -> Iterator[Way]:
    """A lock of the torch that the extension was built for, the nearest to the one that is installed."""
    wanted = [each for each in stated if not admits(each.torch, torch.release)]
    if told is None or not told.known_to_load:
        best = nearest_stated(view, wanted, torch)
    else:
        best = nearest_shown(view, extension, stated, told, torch)
    if best is not None:
        install = Install(package="torch", manager=torch.manager, specifier=f"=={best}", version=best)
        yield Way(f"stackfix lock --torch {best}{with_extension(extension)}", install)


def nearest_stated(view: View, wanted: list[Stated], torch: InstalledTorch) -> str | None:
    """Of the releases that are stated: the newest that is older than the installed one, else the oldest."""
    from stackfix.matrix.query import torch_releases

    fitting = [each for each in torch_releases(view.matrix) if admits(wanted[0].torch, each)] if wanted else []
    older = [each for each in fitting if numbers(each) < numbers(torch.release)]
    return older[0] if older else fitting[-1] if fitting else None


def nearest_shown(view: View, extension: Extension, stated: tuple[Stated, ...], told: Told,
                  torch: InstalledTorch) -> str | None:
    """Of the releases that have all symbols: one that is stated, where something is that the symbols do not disprove.

    None where the metadata refuse each of them, or only another index has a build: no lock would come of it.
    """
    from stackfix.abi.nearest import nearest_torch
    from stackfix.diagnose.nearest_release import is_locked_with

    declared = [each for each in stated if each.source == METADATA]
    possible = [each for each in stated if each.source != METADATA and not admits(each.torch, torch.release)
                and any(admits(each.torch, version) for version in told.known_to_load)]
    builds = [each for each in view.matrix.torch if each.version != torch.release
              and all(admits(one.torch, each.version) for one in possible[:1])]
    here, cuda = there(view, torch), () if extension.cuda_major is None else (extension.cuda_major,)
    known = known_of(extension)
    best = nearest_torch(told.range, torch.release, builds, cuda=cuda, python=here.python, platform=here.platform,
                         declared=lambda version: all(admits(each.torch, version) for each in declared),
                         locked=lambda build: is_locked_with(build, known, view.matrix))
    if best is None or best.build is not None or not all(admits(each.torch, best.version) for each in declared):
        return None
    return best.version if is_locked(view, best.version, known, here.platform) else None


def is_locked(view: View, version: str, known: Known, platform: str) -> bool:
    """Whether a lock of a torch keeps the extension, as far as the matrix decides."""
    from stackfix.abi.nearest import DEFAULT
    from stackfix.diagnose.nearest_release import is_locked_with

    return any(is_locked_with(each, known, view.matrix) for each in view.matrix.torch
               if (each.version, each.index, each.platform) == (version, DEFAULT, platform))


def known_of(extension: Extension) -> Known:
    """The extension as releases of it are looked up."""
    from stackfix.diagnose.nearest_release import Known

    return Known(extension.name, extension.distribution.version if extension.distribution else "")


def with_extension(extension: Extension) -> str:
    """What a lock is asked to keep of the extension."""
    if extension.distribution is None:
        return ""
    version = extension.distribution.version.partition("+")[0]
    return f" --flash-attn {version}" if extension.name == FLASH else f" --with {extension.name}=={version}"


def rebuild(view: View, extension: Extension) -> tuple[str, ...]:
    """What compiles the extension anew for the torch that is there; nothing for those that have no sources."""
    if extension.distribution is None:
        return ("compile the extension anew in this environment",)
    if extension.name.startswith("nvidia-"):                # they have no sources
        return (reinstall(view, extension.distribution),)
    if any(row.package == extension.name for row in view.matrix.companions):
        return ()
    line = build_line(view, extension.distribution)
    if line is None:
        return (f"compile {extension.name} anew from its sources in this environment",)
    return (f"FLASH_ATTENTION_FORCE_BUILD=TRUE {line}",)
