"""The order in which conda-lock's explicit files list packages: each after what it depends on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def install_order(depends: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """Names in the order of conda's own sort: round after round those whose dependencies are done, by name.

    Dependencies outside `depends` (virtual packages, say) count as packages of the first rounds, as they do there:
    whoever needs one waits a round. In a cycle the one that waits for the fewest goes first. pip is no dependency of
    python, though records say so.
    """
    waiting = {name: set(needs) - {name} for name, needs in depends.items()}
    if "python" in waiting:
        waiting["python"].discard("pip")
    for name in {need for needs in waiting.values() for need in needs} - waiting.keys():
        waiting[name] = set()
    order: list[str] = []
    while waiting:
        ready = sorted(name for name, needs in waiting.items() if not needs)
        ready = ready or [min(waiting, key=lambda name: (len(waiting[name]), name))]
        order += ready
        for name in ready:
            del waiting[name]
        for needs in waiting.values():
            needs.difference_update(ready)
    return tuple(name for name in order if name in depends)
