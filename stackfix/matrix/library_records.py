"""What is known of the libraries themselves: which belong together, and what an import or a library opens by name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryFamily:
    """One library with its sublibraries, whatever its version: cuDNN, nvJitLink, the CUDA runtime, and the like."""

    name: str                       # "cuDNN", as people say it
    level: str                      # of the pyramid: "driver", "cuda", "cudnn", "torch", "extensions", "environment"
    stems: tuple[str, ...]          # "libcudnn": sonames are the stem, ".so" and a version; the first is the main one
    symbols: tuple[str, ...]        # prefixes of its functions: "cudnn", "__nvJitLink"
    projects: tuple[str, ...]       # wheels that carry it, without the CUDA suffix: "nvidia-cudnn"
    conda: tuple[str, ...]          # conda packages that carry it: "libcudnn", "cudnn"
    one_per_process: bool           # two majors in one process corrupt each other
    source: str
    confidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedByName:
    """Libraries that another one opens with dlopen, by name, with its own RPATH or RUNPATH (loader rule 3)."""

    library: str                    # soname pattern of the caller: "libcudnn.so.9"
    versions: str | None            # specifier of the caller's own version; None: all
    cuda: str | None = None         # specifier of the CUDA that the caller is for; None: any
    names: tuple[str, ...]          # in order; `{cuda}` is the major of that CUDA
    when: str                       # "load", or "first use": after the import, when the function is first called
    optional: bool                  # the caller does without it
    why: str                        # what it is for: "convolution engines"
    source: str
    confidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportStep:
    """One dlopen of a package's import. `{cuda}` in a pattern is the major of torch's CUDA, `{cuda-digits}` "121"."""

    # Pattern below a site folder: "torch/lib/libtorch_global_deps.so", "flash_attn_2_cuda.*.so"; else a soname, which
    # has neither slash nor wildcard.
    file: str
    also: tuple[str, ...] = ()      # patterns that are tried in the same site folder where `file` is not there
    to_global: bool = False         # RTLD_GLOBAL
    now: bool = True
    # "always"; "first use": after the import; "failed": only if the last step that is always done failed, and names one
    # of the libraries of these steps; "loaded": only if it did not fail. Several of the latter in a row end, unnoticed,
    # at the first that fails.
    when: str = "always"
    given: str | None = None        # of "loaded": pattern of a path that must be mapped by then
    skip: bool = False              # a file that is not there is passed over
    may_fail: str | None = None     # why a failure harms nobody: "only for FFmpeg 4"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportLoads:
    """What `import PROJECT` opens, in order, for a range of its releases."""

    project: str                    # normalised: "torch"
    module: str                     # the import name: "torch"
    versions: str | None            # specifier; None: all
    after: tuple[str, ...]          # projects whose import comes first: ("torch",)
    then: tuple[str, ...] = ()      # projects that it imports itself, at its end, where they are installed: ("numpy",)
    steps: tuple[ImportStep, ...]
    modules_may_fail: str | None = None     # why a failure of its other extension modules harms nobody
    source: str
    confidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Libraries:
    """`matrices/libraries.toml` and `matrices/imports.toml`."""

    families: tuple[LibraryFamily, ...]
    opened: tuple[OpenedByName, ...]
    imports: tuple[ImportLoads, ...]
