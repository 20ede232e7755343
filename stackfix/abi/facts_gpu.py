"""GPU code over all files of a package."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from stackfix.inspect.fatbin_records import CodeSet, GpuArchs

NUMBER = re.compile(r"\d+")


def merge_archs(name: str, each: Iterable[GpuArchs]) -> GpuArchs | None:
    """One record of all; None where there is none. What lies in fatbins of its own stays apart in `sets`."""
    found = tuple(each)
    if not found:
        return None
    counted = Counter[tuple[str, ...]]()
    for archs in found:
        for code in archs.sets:
            counted[code.archs] += code.fatbins
    return GpuArchs(
        path=name, cubins=in_order(arch for archs in found for arch in archs.cubins),
        ptx=in_order(arch for archs in found for arch in archs.ptx),
        others=in_order(arch for archs in found for arch in archs.others),
        sets=tuple(CodeSet(archs=archs, fatbins=count)
                   for archs, count in sorted(counted.items(), key=lambda item: (-item[1], item[0]))),
        empty=sum(archs.empty for archs in found),
    )


def in_order(archs: Iterable[str]) -> tuple[str, ...]:
    """Each once, 90 before 100."""
    return tuple(sorted(set(archs), key=lambda arch: (int((NUMBER.findall(arch) or ["0"])[-1]), arch)))


__all__ = ["merge_archs"]
