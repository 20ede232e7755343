"""What can be said of one stack, on the command line and in a project file alike."""

from __future__ import annotations

from stackfix.quick import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StackOptions:
    """Values as the user gave them. None, False or (): not given."""

    torch: str | None = None
    cuda: str | None = None
    pythons: tuple[str, ...] = ()
    platforms: tuple[str, ...] = ()
    glibc: str | None = None
    macos: str | None = None
    flash_attn: str | None = None
    no_flash_attn: bool = False
    with_: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    requirement_files: tuple[str, ...] = ()
    driver: str | None = None
    cuda_compat: bool = False
    gpu_archs: tuple[str, ...] = ()
    exclude_newer: str | None = None
    formats: tuple[str, ...] = ()
    directory: str | None = None
    index_url: str | None = None
    extra_index_urls: tuple[str, ...] = ()
    torch_index: str | None = None
    flash_attn_source: str | None = None
    channels: tuple[str, ...] = ()
    layout: str | None = None
    allow_builds: tuple[str, ...] = ()
