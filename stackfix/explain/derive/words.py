"""Lists of releases as people write them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stackfix.abi.nvidia_versions import Key, version_key


def joined(words: Sequence[str], last: str = "and") -> str:
    """"a", "a and b", "a, b and c"."""
    return f" {last} ".join(filter(None, (", ".join(words[:-1]), words[-1]))) if words else ""


def spans(chosen: Iterable[str], every: Sequence[str]) -> str:
    """Releases of a list, runs shortened: "2.1 and 2.2", "1.13 to 2.2 and 2.4"."""
    places = sorted({every.index(each) for each in chosen if each in every})
    runs: list[list[int]] = []
    for place in places:
        if runs and runs[-1][-1] == place - 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    words: list[str] = []
    for run in runs:
        words += [every[each] for each in run] if len(run) < 3 else [f"{every[run[0]]} to {every[run[-1]]}"]
    return joined(words)


def minor_of(version: str) -> str:
    """"2.3" of "2.3.1+cu121"."""
    return ".".join(version.partition("+")[0].split(".")[:2])


def minors_of(versions: Iterable[str]) -> tuple[str, ...]:
    """The minors of versions, oldest first, each once."""
    return in_order({minor_of(each) for each in versions})


def in_order(versions: Iterable[str]) -> tuple[str, ...]:
    """Oldest first; what is no version is left out."""
    return tuple(text for _, text in sorted((key_of(each), each) for each in versions if version_key(each)))


def key_of(version: str) -> Key:
    """What versions compare by; what is none comes before all. A local version counts for nothing."""
    return version_key(version.partition("+")[0]) or ((), (-2, 0), -1, 0)
