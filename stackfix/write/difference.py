"""What changed between two lockfiles, or a lockfile and an environment. Compares; reads nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from stackfix.errors import BadInput
from stackfix.write.records import Changed, Held, HeldTarget, TargetChanges

SUFFIX = re.compile(r"-cu\d{2,3}$")
# In the order in which they are shown, by key; `nvidia-` and `cuda-` are CUDA, too
STACK = ("torch", "pytorch-cuda", "cuda-version", "nvidia-cuda-runtime", "nvidia-cudnn", "nvidia-nvjitlink",
         "flash-attn", "flash-attn-3", "python", "libtorch", "torchvision", "torchaudio", "triton", "xformers",
         "bitsandbytes")
CONDA = "conda:"        # in front of the key of a package that is no project of pip
CUDA_NAMES = ("nvidia-", "cuda-", "libcu", "libnv", "cudatoolkit")


def key_of(project: str) -> str:
    """The project without its CUDA suffix: `nvidia-cublas` of `nvidia-cublas-cu12`."""
    return SUFFIX.sub("", project)


def pair_targets(
    before: Sequence[HeldTarget], after: Sequence[HeldTarget],
) -> tuple[list[tuple[HeldTarget, HeldTarget]], list[HeldTarget], list[HeldTarget]]:
    """Targets of both sides that belong together, those of the first alone, and of the second alone.

    One target of each side is compared in any case: that it is another one is a difference of its own.
    """
    pairs, left = list[tuple[HeldTarget, HeldTarget]](), list(after)
    alone = []
    for one in before:
        other = next((other for other in left if fits(one, other)), None)
        if other is None:
            alone.append(one)
        else:
            left.remove(other)
            pairs.append((one, other))
    if not pairs and len(alone) == len(left) == 1:
        return [(alone[0], left[0])], [], []
    return pairs, alone, left


def fits(one: HeldTarget, other: HeldTarget) -> bool:
    """Whether they can be the same target, as far as both say."""
    return all(mine is None or theirs is None or mine == theirs
               for mine, theirs in ((one.python, other.python), (one.platform, other.platform),
                                    (one.variant, other.variant)))


def beside_environment(targets: Sequence[HeldTarget], environment: HeldTarget) -> tuple[HeldTarget, ...]:
    """The targets that an environment can be: it is no other, so that the others are no difference. All where none."""
    return tuple(one for one in targets if fits(one, environment)) or tuple(targets)


def select(
    targets: Sequence[HeldTarget], *, python: str | None, platform: str | None, name: str,
) -> tuple[HeldTarget, ...]:
    """The targets that are asked for. Raises BadInput where a file has none of them."""
    found = tuple(one for one in targets if (python is None or one.python in {None, python})
                  and (platform is None or one.platform is None or platform in {one.platform, one.place}))
    if targets and not found:
        options = [*([f"--python {python}"] if python else []), *([f"--platform {platform}"] if platform else [])]
        raise BadInput(" ".join(options), f"{name} has no such target",
                       f"its targets: {'; '.join(one.label for one in targets)}")
    return found


def compare_targets(before: HeldTarget, after: HeldTarget) -> TargetChanges:
    """What changed, packages of the stack first."""
    changes = compare(list(before.packages), list(after.packages))
    return TargetChanges(before=before, after=after, changes=tuple(sorted(changes, key=order)))


def compare(before: list[Held], after: list[Held]) -> Iterator[Changed]:
    """Pairs those of one manager and name, then of one manager and project, then of one project."""
    for same in (of_name, of_manager, of_project):
        left: dict[tuple[str, ...], list[Held]] = {}
        for other in after:
            left.setdefault(same(other), []).append(other)
        for one in tuple(before):
            found = left.get(same(one))
            if found:
                other = found.pop(0)
                before.remove(one)
                after.remove(other)
                kinds = kinds_of(one, other)
                if kinds:
                    yield changed(kinds, one, other)
    yield from (changed(("removed",), one, None) for one in before)
    yield from (changed(("added",), None, one) for one in after)


def of_name(one: Held) -> tuple[str, ...]:
    """What is the same package to its manager."""
    return one.manager, one.name


def of_manager(one: Held) -> tuple[str, ...]:
    """What is the same project to its manager."""
    return one.manager, one.key


def of_project(one: Held) -> tuple[str, ...]:
    """What is the same project."""
    return (one.key,)


def changed(kinds: tuple[str, ...], before: Held | None, after: Held | None) -> Changed:
    """The record."""
    return Changed(kinds=kinds, stack=any(one is not None and is_stack(one) for one in (before, after)),
                   before=before, after=after)


def kinds_of(one: Held, other: Held) -> tuple[str, ...]:
    """In what two packages of one key differ; nothing where neither says anything else than the other."""
    if one.manager != other.manager:
        return ("manager", *(() if is_one_version(one.version, other.version) else ("version",)))
    kinds = [] if is_one_version(one.version, other.version) else ["version"]
    if differ(one.build, other.build) or differ(*(local(side.version) for side in (one, other))):
        kinds.append("build")
    # of pip it is the file's address, another for each version; of conda the channel, and each has an ABI of its own
    may_say = one.manager == "conda" or "version" not in kinds
    if one.name != other.name or (may_say and differ(one.source, other.source)):
        kinds.append("source")
    if kinds in ([], ["source"]) and is_other_file(one, other):
        kinds.append("hash")
    return tuple(kinds)


def is_other_file(one: Held, other: Held) -> bool:
    """Whether both have hashes of one kind, and none in common. An index's pin has those of all its files."""
    for kind in ("sha256:", "md5:"):
        mine, theirs = ({text for text in side.hashes if text.startswith(kind)} for side in (one, other))
        if mine and theirs:
            return not mine & theirs
    return False


def differ(one: str | None, other: str | None) -> bool:
    """Whether both say something, and not the same."""
    return None not in (one, other) and one != other


def is_one_version(one: str | None, other: str | None) -> bool:
    """Whether the versions are one release, local parts aside; also where a side does not say its version."""
    from packaging.version import Version

    if one is None or other is None or one == other:
        return True
    try:
        return Version(Version(one).public) == Version(Version(other).public)
    except ValueError:      # InvalidVersion, or a number that int() refuses
        return False


def local(version: str | None) -> str | None:
    """`cu121` of `2.3.1+cu121`, nothing of `2.3.1`; None where there is no version."""
    return None if version is None else version.partition("+")[2]


def is_stack(one: Held) -> bool:
    """Whether it is torch, CUDA or what is built for them."""
    key = one.key.removeprefix(CONDA)
    return key in STACK or key.startswith(CUDA_NAMES) or one.name.startswith(CUDA_NAMES)


def order(change: Changed) -> tuple[int, int, str]:
    """The stack first, in its own order; then by name."""
    one = change.after or change.before
    key = one.key.removeprefix(CONDA) if one is not None else ""
    return (not change.stack, STACK.index(key) if key in STACK else len(STACK), key)


def is_different(targets: Iterable[TargetChanges]) -> bool:
    """Whether anything changed."""
    return any(one.changes or not fits(one.before, one.after) for one in targets)
