"""What a shared object carries for GPUs, as plain records."""

from __future__ import annotations

from stackfix.quick import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeSet:
    """Fatbins of one file that carry code for exactly these architectures."""

    archs: tuple[str, ...]          # "sm_80", "sm_90a", "compute_90", "lto_90"; by number
    fatbins: int                    # how many: about one for each source file that was compiled


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuArchs:
    """The GPU code of one shared object, over all its fatbins that hold any kernel.

    Not every fatbin has every architecture: a library may keep a fatbin for each, and an extension may have kernels
    that only newer GPUs can run. `sets` tells which go together.
    """

    path: str
    cubins: tuple[str, ...]         # machine code: "sm_80"; "sm_90a" (that GPU alone), "sm_100f" (its family)
    ptx: tuple[str, ...]            # what a driver can compile: "compute_90", "compute_90a"
    others: tuple[str, ...]         # link-time code ("lto_90"), and kinds of entry that are not known ("kind16_100")
    sets: tuple[CodeSet, ...]       # the most frequent first
    empty: int                      # fatbins without a kernel, which compilers leave behind; counted nowhere else

    @property
    def fatbins(self) -> int:
        """How many fatbins hold a kernel."""
        return sum(each.fatbins for each in self.sets)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableFatbin:
    """A file whose GPU code cannot be told, and why."""

    path: str
    reason: str
