"""Builds that would fit a GPU or a driver, by the matrix."""

from __future__ import annotations

from stackfix.diagnose.install_lines import FLASH, build_line
from stackfix.diagnose.installed_torch import InstalledTorch, installed_torch, numbers, platform_of
from stackfix.diagnose.machine_libraries import user_driver
from stackfix.diagnose.situation import View
from stackfix.inspect.environment_records import Owner


def ways_out(view: View, package: str, capability: str) -> tuple[str, ...]:
    """Another build of torch, or the line that builds an extension for this GPU."""
    digits, (name, _, version) = capability.replace(".", ""), package.partition(" ")
    torch = installed_torch(view)
    if torch is not None and package == torch.name:
        return builds_for(view, torch, capability)
    again = build_line(view, Owner(manager="pip", name=name, version=version))
    variable = f"FLASH_ATTN_CUDA_ARCHS={digits}" if name == FLASH else f"TORCH_CUDA_ARCH_LIST={capability}"
    line = f"FLASH_ATTENTION_FORCE_BUILD=TRUE {variable} {again}" if again else \
        f"compile {name} anew from its sources in this environment, with {variable}"
    if name == FLASH:
        releases = (each.nvcc_release for each in view.machine.toolkits if each.nvcc_release)
        nvcc = max(releases, key=numbers, default=None)
        return (f"{line}  # nvcc must know sm_{digits}" + (f"; the newest here is {nvcc}" if nvcc else ""),
                "or use torch.nn.functional.scaled_dot_product_attention")
    return (line,) if version else ()


def builds_for(view: View, torch: InstalledTorch, capability: str) -> tuple[str, ...]:
    """Locks with code for the GPU: of the same torch where one is known, else of the nearest before and after it."""
    from stackfix.matrix.query import builds, driver_supports, gpu_runs

    driver, release = user_driver(view), numbers(torch.release)
    fitting = [each for each in builds(view.matrix, platform=platform_of(view))
               if each.gpu_archs and gpu_runs(each.gpu_archs, capability)
               and (driver is None or driver_supports(view.matrix, driver, each.cuda))]
    same = [each for each in fitting if numbers(each.version) == release]
    older = [each for each in fitting if numbers(each.version) < release]
    later = [each for each in fitting if numbers(each.version) > release]
    arch = f"sm_{capability.replace('.', '')}"
    return tuple(f"stackfix lock --torch {each.version} --cuda {each.cuda} --gpu-arch {arch}"
                 for each in same[:1] or (*older[:1], *later[-1:]))


def other_builds(view: View, torch: InstalledTorch, driver: str) -> tuple[str, ...]:
    """Locks of the same torch for a CUDA that the driver runs; else the newest torch that has one."""
    from stackfix.matrix.query import CPU, builds, driver_supports

    fitting = [each for each in builds(view.matrix, platform=platform_of(view))
               if each.cuda != CPU and driver_supports(view.matrix, driver, each.cuda)]
    same = [each for each in fitting if each.version == torch.release]
    return tuple(f"stackfix lock --torch {each.version} --cuda {each.cuda} --driver {driver}"
                 for each in (same or fitting)[:1])
