"""Releases and builds of torch as derivations name them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stackfix.explain.records import Facts, Fields
from stackfix.matrix.records import TorchBuild

CPU = "cpu"
DEFAULT_INDEX = "default"
PLATFORM = "linux-64"       # a text that names no other platform is read as one of x86-64


def numbers(version: str) -> tuple[int, ...]:
    """The release of a version, to compare by: (2, 3, 1) of "2.3.1+cu121" and of "2.3.1rc2"."""
    found: list[int] = []
    for part in version.partition("+")[0].split("."):
        digits = part[:len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        found.append(int(digits[:9]))
        if digits != part:
            break
    return tuple(found)


def public(version: str) -> str:
    """A version without its local part."""
    return version.partition("+")[0]


def releases(facts: Facts) -> tuple[str, ...]:
    """Releases of torch that the matrix knows, oldest first."""
    return tuple(sorted({build.version for build in facts.torch}, key=numbers))


def spread(versions: Iterable[str], among: Sequence[str]) -> str:
    """Versions as a reader wants them: "2.1.0 to 2.3.1, 2.6.0", where `among` are all there are, in order."""
    chosen = set(versions)
    runs: list[list[str]] = [[]]
    for version in among:
        if version in chosen:
            runs[-1].append(version)
        elif runs[-1]:
            runs.append([])
    return ", ".join(run[0] if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs if run)


def builds_of(facts: Facts, release: str) -> tuple[TorchBuild, ...]:
    """Builds of one release for x86-64: that of the default index first, then in file order."""
    found = [each for each in facts.torch if each.version == release and each.platform == PLATFORM]
    return tuple(sorted(found, key=lambda each: each.index != DEFAULT_INDEX))


def named_build(fields: Fields, facts: Facts) -> TorchBuild | None:
    """The build that the text names as `torch` and `cuda`; that of the default index where it names no CUDA."""
    found, cuda = builds_of(facts, public(fields.get("torch", ""))), fields.get("cuda")
    return next((each for each in found if cuda is None or each.cuda == cuda), None)


def build_name(build: TorchBuild) -> str:
    """The build as people name it: "torch 2.3.1 for CUDA 12.1"."""
    return f"torch {build.version} for {'the CPU' if build.cuda == CPU else f'CUDA {build.cuda}'}"


def lock_command(build: TorchBuild, *, driver: str | None = None, arch: str | None = None) -> str:
    """The lock of a build, for a driver and a GPU where they are known."""
    more = "".join(f" {option} {value}" for option, value in (("--driver", driver), ("--gpu-arch", arch)) if value)
    return f"stackfix lock --torch {build.version} --cuda {build.cuda}{more}"


def by_preference(
    builds: Iterable[TorchBuild], fields: Fields, facts: Facts, *, usual: bool = False,
) -> list[TorchBuild]:
    """Builds to propose: those whose wheel is known before others, which `lock` refuses where it cannot ask the index.

    Of these the release that the text names, else newest first; of one release the default index's.
    `usual`: those of the default index before all others.
    """
    release = public(fields.get("torch", ""))
    newest = sorted(builds, key=lambda each: (numbers(each.version), each.index == DEFAULT_INDEX), reverse=True)
    return sorted(newest, key=lambda each: (
        not facts.has_wheel(each), each.version != release, usual and each.index != DEFAULT_INDEX))
