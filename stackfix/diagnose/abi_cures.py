"""Releases that would fit each other, by the matrix: of an extension for the torch that is there, and the reverse."""

from __future__ import annotations

from collections.abc import Iterator

from stackfix.diagnose.abi_groups import Extension
from stackfix.diagnose.abi_stated import Stated
from stackfix.diagnose.install_lines import build_line, install_line, reinstall
from stackfix.diagnose.installed_torch import InstalledTorch, numbers, platform_of
from stackfix.diagnose.releases import admits
from stackfix.diagnose.situation import View
from stackfix.matrix.records import Companion, TorchBuild

FLASH = "flash-attn"


def builds_of(view: View, torch: InstalledTorch) -> list[TorchBuild]:
    """Rows of the installed torch: of its own CUDA where that is known."""
    rows = [each for each in view.matrix.torch
            if each.version == torch.release and each.platform == platform_of(view)]
    exact = [each for each in rows if each.cuda == torch.cuda]
    return exact or [each for each in rows if torch.cuda is None or each.cuda.partition(".")[0] == torch.cuda]


def for_this_torch(view: View, extension: Extension, torch: InstalledTorch) -> Iterator[str]:
    """Commands that bring a build of the extension for the torch that is installed."""
    rows = builds_of(view, torch)
    if extension.name == FLASH:
        yield from flash_attn(view, rows, extension)
        return
    from stackfix.matrix.query import companion, companion_versions

    for version in companion_versions(view.matrix, extension.name):
        row = companion(view.matrix, extension.name, version)
        if row is not None and is_for(row, rows, torch) and has_cuda_of(view, row, torch) and not same(
                extension, version):
            yield install_line(view, extension.distribution, f"{extension.name}=={version}")
            return


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
    return extension.distribution is not None and extension.distribution.version.partition("+")[0] == version


def flash_attn(view: View, rows: list[TorchBuild], extension: Extension) -> Iterator[str]:
    """The next release that has a prebuilt wheel for this torch, Python and platform; else the newest that has."""
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
        yield (f"stackfix lock --torch {row.version} --cuda {row.cuda} --flash-attn {best.version}  "
               f"# there is {best.file}")


def for_the_extension(view: View, extension: Extension, stated: tuple[Stated, ...],
                      torch: InstalledTorch) -> Iterator[str]:
    """A lock of the torch that the extension was built for, the nearest to the one that is installed."""
    wanted = next((each.torch for each in stated if each.torch and not admits(each.torch, torch.release)), None)
    if wanted is None:
        return
    from stackfix.matrix.query import torch_releases

    fitting = [each for each in torch_releases(view.matrix) if admits(wanted, each)]
    older = [each for each in fitting if numbers(each) < numbers(torch.release)]
    best = older[0] if older else fitting[-1] if fitting else None
    if best is not None:
        yield f"stackfix lock --torch {best}{with_extension(extension)}"


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
