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
    names: tuple[str, ...]          # in order
    when: str                       # "load", or "first use": after the import, when the function is first called
    optional: bool                  # the caller does without it
    why: str                        # what it is for: "convolution engines"
    source: str
    confidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportStep:
    """One dlopen of a package's import."""

    file: str                       # pattern below a site folder ("torch/lib/libtorch_global_deps.so"), or a soname
    to_global: bool = False         # RTLD_GLOBAL
    now: bool = True
    when: str = "always"            # "always"; "failed": only if the step before failed; "first use"
    may_fail: str | None = None     # why a failure harms nobody: "only for FFmpeg 4"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportLoads:
    """What `import PROJECT` opens, in order, for a range of its releases."""

    project: str                    # normalised: "torch"
    module: str                     # the import name: "torch"
    versions: str | None            # specifier; None: all
    after: tuple[str, ...]          # projects whose import comes first: ("torch",)
    steps: tuple[ImportStep, ...]
    source: str
    confidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Libraries:
    """`matrices/libraries.toml` and `matrices/imports.toml`."""

    families: tuple[LibraryFamily, ...]
    opened: tuple[OpenedByName, ...]
    imports: tuple[ImportLoads, ...]
