"""What belongs to the GPU stack, and which builds of torch a text can mean. Questions of several derivations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from stackfix.explain.records import Facts
from stackfix.matrix.records import TorchBuild

PLATFORM = "linux-64"       # a text that names no other platform is read as one of x86-64
DEFAULT_INDEX, CPU = "default", "cpu"
# Projects that no row of the matrix names, but whose builds are for one CUDA: by their beginnings.
STARTS = ("nvidia-", "cuda-", "libcu", "jax", "tensorflow", "cupy-cuda", "pytorch")
OTHERS = frozenset({"torch", "torchaudio", "torchvision", "torchtext", "torchcodec", "flash-attn", "xformers", "triton",
                    "vllm", "vllm-flash-attn", "deepspeed", "bitsandbytes", "apex", "onnxruntime-gpu", "cudnn", "nccl",
                    "cuda-version", "cudatoolkit", "fbgemm-gpu", "ctranslate2", "causal-conv1d", "mamba-ssm",
                    "transformer-engine", "sageattention", "torchac", "torchac-cuda"})


def project(name: str) -> str:
    """A project's name as requirements compare it, without extras: "flash-attn" of "Flash_Attn[x]"."""
    return re.sub(r"[-_.]+", "-", name.partition("[")[0]).strip("-").lower()


def in_stack(name: str) -> bool:
    """Whether a project is of the GPU stack: one build of it fits one torch, or one CUDA."""
    own = project(name)
    return own in OTHERS or own.startswith(STARTS)


def release_of(text: str) -> Version | None:
    """The version without its local part; None where it is none."""
    try:
        return Version(Version(text).public)
    except InvalidVersion:
        return None


def admits(specifier: str, version: str) -> bool | None:
    """Whether a specifier admits a version; None where either cannot be read. Spaces and "and" are commas, too."""
    clauses = ",".join(filter(None, re.split(r"\s*(?:,|\band\b|\s)\s*(?=[<>=!~])", specifier.strip())))
    try:
        return SpecifierSet(clauses).contains(Version(version), prereleases=True)
    except (InvalidSpecifier, InvalidVersion):
        return None


def linux_builds(facts: Facts) -> tuple[TorchBuild, ...]:
    """Builds for Linux x86-64: of a release those of the default index first."""
    return tuple(sorted((each for each in facts.torch if each.platform == PLATFORM),
                        key=lambda each: each.index != DEFAULT_INDEX))


def releases(builds: Iterable[TorchBuild]) -> tuple[str, ...]:
    """Releases of builds, oldest first, each once."""
    return tuple(sorted({each.version for each in builds}, key=Version))


def builds_meant(torch: str | None, cuda: str | None, facts: Facts) -> tuple[TorchBuild, ...]:
    """Builds that a text means by a torch version, or by its first two parts, and a CUDA; the likeliest first."""
    release = release_of(torch or "")
    if torch is None or release is None:
        return ()
    local = local_cuda(torch) or cuda
    parts = release.release if len(release.release) > len(("2", "3")) else release.release[:2]
    found = [each for each in linux_builds(facts) if Version(each.version).release[:len(parts)] == parts]
    found.sort(key=lambda each: Version(each.version), reverse=True)
    return tuple(sorted((each for each in found if local in {None, each.cuda}),
                        key=lambda each: each.index != DEFAULT_INDEX))


def local_cuda(torch: str) -> str | None:
    """"12.1" of "2.3.1+cu121", "cpu" of "2.3.1+cpu"; None where no local version tells."""
    match = re.search(r"\+(?:cu(\d{2})(\d)|(cpu))\b", torch)
    return None if match is None else match[3] or f"{match[1]}.{match[2]}"


def pins_of(build: TorchBuild) -> Mapping[str, str]:
    """What a build's own metadata requires for Linux: project -> specifier."""
    found: dict[str, str] = {}
    for line in build.requires:
        match = re.match(r"([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?\s*([^;]*)", line)
        if match and '"Windows"' not in line:
            found.setdefault(project(match[1]), match[2].strip())
    return found


def minor(version: str) -> str:
    """"2.3" of "2.3.1+cu121"."""
    return ".".join(version.partition("+")[0].split(".")[:2])


def lock_of(build: TorchBuild, python: str | None = None, *more: str) -> str:
    """The command that locks a build, for this Python where the build has it."""
    own = (f"--python {python}",) if python in build.pythons else ()
    return " ".join((f"stackfix lock --torch {build.version} --cuda {build.cuda}", *own, *more))
