"""Releases of cuDNN: which torch comes with which."""

from __future__ import annotations

import re
from collections.abc import Mapping

from stackfix.explain.derive.releases import (
    DEFAULT_INDEX,
    PLATFORM,
    by_preference,
    lock_command,
    numbers,
    releases,
    spread,
)
from stackfix.explain.records import Derivation, Facts, Fields
from stackfix.matrix.records import TorchBuild

BEFORE_9, FROM_9 = 1000, 10000      # what cudnn.h multiplies the major by in CUDNN_VERSION: 8902, 90100
SUFFIX = re.compile(r"-cu(\d+)")
TRIPLE = 3      # of a release of cuDNN a program knows major, minor and patch; the wheel has a fourth part


def dotted(text: str) -> str:
    """The release that "9, 1, 0", "(9, 1, 0)", "9.1.0", 8902 or 90100 mean; "" where it is none."""
    parts = text.strip("() ").replace(",", ".").replace(" ", "").split(".")
    if not all(part.isdecimal() for part in parts):
        return ""
    if len(parts) == 1 and len(parts[0]) >= len("7102"):
        number = int(parts[0][:9])
        major = FROM_9 if number >= 9 * FROM_9 else BEFORE_9
        return f"{number // major}.{number % major // 100}.{number % 100}"
    return ".".join(str(int(part[:9])) for part in parts)


def builds_with(facts: Facts, release: str) -> tuple[TorchBuild, ...]:
    """Builds of torch for x86-64 that pin a cuDNN of this release, such as "9.1.0"."""
    wanted = numbers(release)[:TRIPLE]
    return tuple(each for each in facts.torch if each.platform == PLATFORM and each.cudnn is not None
                 and numbers(each.cudnn)[:len(wanted)] == wanted)


def pin_of(build: TorchBuild) -> str | None:
    """The line of a build's metadata that names cuDNN."""
    return next((line.partition(";")[0].strip() for line in build.requires if line.startswith("nvidia-cudnn")), None)


def cudnn_pair(fields: Fields, facts: Facts) -> Fields:
    """What the two releases in a message are, which torch pins each, and a lock with one that is new enough.

    Reads `compiled` and `runtime`.
    """
    compiled, runtime = dotted(fields.get("compiled", "")), dotted(fields.get("runtime", ""))
    if not compiled or not runtime:
        return {}
    found = {"compiled_version": compiled, "runtime_version": runtime,
             "compiled_major": compiled.partition(".")[0], "runtime_major": runtime.partition(".")[0],
             "order": "older" if numbers(runtime) < numbers(compiled) else "newer"}
    every = releases(facts)
    for name, version in (("compiled", compiled), ("runtime", runtime)):
        builds = builds_with(facts, version)
        usual = tuple(each for each in builds if each.index == DEFAULT_INDEX) or builds
        if usual:
            found[f"{name}_torch"] = spread({each.version for each in usual}, every)
            pins = sorted({pin for pin in map(pin_of, usual) if pin}, reverse=True)
            found |= {f"{name}_pin": pins[0]} if pins else {}
    # whoever shares cuDNN shares the CUDA major as well: that of the pin, else 12
    major = suffix[1] if (suffix := SUFFIX.search(found.get("runtime_pin", ""))) else "12"
    enough = {each.version for each in facts.torch if each.platform == PLATFORM and each.index == DEFAULT_INDEX
              and each.cudnn and serves(each.cudnn, compiled) and each.cuda.startswith(f"{major}.")}
    return {**found, "cuda_major": major, **({"enough_torch": spread(enough, every)} if enough else {})}


def serves(runtime: str, compiled: str) -> bool:
    """Whether a cuDNN serves a program that was compiled with another: same major, no older minor.

    So TensorFlow and XLA check it, and so NVIDIA promises it: compatible within a major.
    """
    (major, *rest), (wanted, *least) = numbers(runtime), numbers(compiled)
    return major == wanted and rest[:1] >= least[:1]


def torch_cudnn_lock(fields: Fields, facts: Facts) -> Fields:
    """`lock` of a torch that brings the cuDNN which the message's torch was compiled with."""
    builds = by_preference(builds_with(facts, dotted(fields.get("compiled", "")) or "0"), fields, facts, usual=True)
    return {"lock": lock_command(builds[0]), "pinned_cudnn": builds[0].cudnn or ""} if builds else {}


def torch_with_cudnn_9(fields: Fields, facts: Facts) -> Fields:
    """`first_cudnn_9`, the first torch of the default index that pins cuDNN 9, and `lock` of a torch that does."""
    builds = [each for each in facts.torch if each.platform == PLATFORM and (each.cudnn or "").startswith("9.")]
    usual = [each for each in builds if each.index == DEFAULT_INDEX]
    if not usual:
        return {}
    return {"first_cudnn_9": min((each.version for each in usual), key=numbers),
            "lock": lock_command(by_preference(builds, fields, facts, usual=True)[0])}


DERIVE: Mapping[str, Derivation] = {
    "cudnn-pair": cudnn_pair, "torch-cudnn-lock": torch_cudnn_lock, "torch-with-cudnn-9": torch_with_cudnn_9,
}
