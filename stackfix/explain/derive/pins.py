"""Which versions of CUDA's libraries a build of torch brings, and which lock asks for a build."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from stackfix.explain.derive.words import in_order, key_of, minor_of
from stackfix.explain.records import Facts, Fields
from stackfix.matrix.records import TorchBuild

PIN = re.compile(r"(nvidia-[a-z0-9-]+)\s*==\s*([0-9][0-9a-z.]*)(?![0-9a-z.*])")
PLATFORM = "linux-64"


def libraries_of(build: TorchBuild, facts: Facts) -> Mapping[str, str]:
    """Package -> version: its own exact pins, else what its CUDA toolkit release holds."""
    found = {each.package: each.version for each in facts.matrix.components
             if each.toolkit == build.toolkit}
    found.update((match[1], match[2]) for match in map(PIN.match, build.requires) if match)
    return found


def asked_for(facts: Facts) -> frozenset[str]:
    """NVIDIA's packages that some build of torch requires by name: a toolkit holds more than torch brings (NPP)."""
    names = (re.match(r"nvidia-[a-z0-9-]+", line) for build in facts.torch for line in build.requires)
    return frozenset(match[0] for match in names if match)


def builds_with(package: str, versions: Iterable[str], facts: Facts) -> tuple[TorchBuild, ...]:
    """Builds that bring one of these versions of a package, in the matrix's order."""
    wanted = set(versions)
    return tuple(each for each in linux_builds(facts) if libraries_of(each, facts).get(package) in wanted)


def linux_builds(facts: Facts) -> tuple[TorchBuild, ...]:
    """Builds for Linux x86_64."""
    return tuple(each for each in facts.torch if each.platform == PLATFORM)


def builds_named(fields: Fields, facts: Facts) -> tuple[TorchBuild, ...]:
    """Builds of the torch that a text names: of its CUDA where it says one; else those of the default index first."""
    torch, cuda = fields.get("torch"), fields.get("cuda")
    if not torch:
        return ()
    whole = torch.count(".") > 1        # "2.3" is the newest of its patches
    same = [each for each in linux_builds(facts) if whole and key_of(each.version) == key_of(torch)]
    same = same or [each for each in newest_first(linux_builds(facts)) if each.version.startswith(f"{torch}.")]
    return tuple(sorted((each for each in same if cuda in {None, each.cuda}), key=lambda each: each.index != "default"))


def lock_of(builds: Iterable[TorchBuild], python: str | None = None) -> str | None:
    """The command that locks the first of these builds, for this Python where the build has it; None without builds."""
    build = next(iter(builds), None)
    if build is None:
        return None
    own = f" --python {python}" if python is not None and python in build.pythons else ""
    return f"stackfix lock --torch {build.version} --cuda {build.cuda}{own}"


def newest_first(builds: Iterable[TorchBuild]) -> list[TorchBuild]:
    """The newest release first; of one release the default index's build first."""
    return sorted(builds, key=lambda each: (key_of(each.version), each.index == "default"), reverse=True)


def torch_minors(builds: Iterable[TorchBuild]) -> tuple[str, ...]:
    """Their minors, oldest first."""
    return in_order({minor_of(each.version) for each in builds})
