"""GPUs: which builds hold code for them."""

from __future__ import annotations

from collections.abc import Mapping

from stackfix.explain.derive.releases import (
    DEFAULT_INDEX,
    PLATFORM,
    build_name,
    by_preference,
    lock_command,
    named_build,
    numbers,
)
from stackfix.explain.records import Derivation, Facts, Fields
from stackfix.matrix.hardware import gpu_capability, gpu_runs
from stackfix.matrix.records import TorchBuild


def gpu(fields: Fields, _facts: Facts) -> Fields:
    """`arch` "sm_120" and `capability` "12.0" of what the message calls the GPU in `capability_read`."""
    found = gpu_capability(fields.get("capability_read", ""))
    return {"arch": f"sm_{found[0]}{found[1]}", "capability": f"{found[0]}.{found[1]}"} if found else {}


def torch_for_gpu(fields: Fields, facts: Facts) -> Fields:
    """Builds of torch with code for `arch`: of the text's own release, of the default index, and `lock` of the best."""
    arch = fields.get("arch", "")
    named = named_build(fields, facts)
    found = {"named_build": build_name(named), "named_archs": " ".join(named.gpu_archs)} if named else {}
    read = [each for each in facts.torch if each.platform == PLATFORM and each.gpu_archs]
    fitting = [each for each in read if arch and gpu_runs(each.gpu_archs, arch)]
    if not fitting:
        return found
    own = [each for each in fitting if named is not None and each.version == named.version]
    if own:
        found["same_release"] = ", ".join(build_name(each) for each in own)
    usual = [each for each in fitting if each.index == DEFAULT_INDEX]
    for name, builds in (("default", usual), ("any", fitting)):
        if builds:
            found |= {f"oldest_{name}": build_name(min(builds, key=order)),
                      f"newest_{name}": build_name(max(builds, key=order))}
    found["lock"] = lock_command(by_preference(fitting, fields)[0], arch=arch)
    return found


def order(build: TorchBuild) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """By release, then by CUDA."""
    return numbers(build.version), numbers(build.cuda)


DERIVE: Mapping[str, Derivation] = {"gpu": gpu, "torch-for-gpu": torch_for_gpu}
