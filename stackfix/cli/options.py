"""The options of `stackfix lock` as a record, from the command line or from a project file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import click

from stackfix.quick import dataclass
from stackfix.request.stack_options import StackOptions

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
STACK_OPTIONS = (       # any of these on the command line: the project file is not read
    "torch", "cuda", "pythons", "platforms", "flash_attn", "no_flash_attn", "with_", "constraints",
    "requirement_files", "driver", "cuda_compat", "gpu_archs",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LockOptions(StackOptions):
    """What `stackfix lock` takes; nothing is checked yet."""

    name: str | None = None
    check: bool = False
    overwrite: bool = False
    prove: bool = False
    upgrade: bool = False
    upgrade_packages: tuple[str, ...] = ()
    matrix_directory: str | None = None
    base: Path = Path()             # folder that relative paths of requirement files start from
    project_file: str | None = None  # "stackfix.toml": where the stack was written; None: on the command line

    def asks_for_a_stack(self) -> bool:
        """Whether any option says what the stack should be."""
        return any(given(getattr(self, name)) for name in STACK_OPTIONS)

    def over(self, below: LockOptions) -> LockOptions:
        """These options where given, else those of `below`."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "base"}
        return replace(below, **{name: value for name, value in values.items() if given(value)})


def given(value: Any) -> bool:
    """Whether an option was given: an empty text was, and is never taken for one that was left out."""
    return value is not None and value is not False and value != ()


LOCK_OPTIONS: tuple[Decorator, ...] = (
    click.option("--torch", metavar="VERSION",
                 help="`2.3` is the newest 2.3.x; a PEP 440 specifier; `nightly-2025-10-15`."),
    click.option("--cuda", metavar="VERSION", help="`12.1`, `12`, or `cpu`."),
    click.option("--python", "pythons", metavar="X.Y", multiple=True, help="Python minor; may be repeated."),
    click.option("--platform", "platforms", metavar="SUBDIR", multiple=True,
                 help="linux-64, linux-aarch64, win-64, osx-arm64; `linux-64-cpu`: the CPU build there."),
    click.option("--glibc", metavar="X.Y", help="Newest glibc that wheels may need; 2.28 without it."),
    click.option("--macos", metavar="X.Y", help="Newest macOS that wheels may need; 14.0 without it."),
    click.option("--flash-attn", metavar="VERSION", help="Must be met, or the answer is no."),
    click.option("--no-flash-attn", is_flag=True, help="Leave flash-attn out."),
    click.option("--with", "with_", metavar="REQUIREMENT", multiple=True, help="A further requirement (PEP 508)."),
    click.option("--constraint", "constraints", metavar="REQUIREMENT", multiple=True, help="Limits, adds nothing."),
    click.option("-r", "--requirement", "requirement_files", metavar="FILE", multiple=True,
                 help="requirements.in, read as pip-compile reads it, or environment.yml."),
    click.option("--driver", metavar="VERSION", help="NVIDIA driver it must run on; `auto`: this machine's."),
    click.option("--cuda-compat", is_flag=True, help="A forward-compatibility package stands in for the driver."),
    click.option("--gpu-arch", "gpu_archs", metavar="SM", multiple=True, help="`sm_90`; `auto`: this machine's."),
    click.option("--exclude-newer", metavar="DATE", help="Only files uploaded before (ISO 8601)."),
    click.option("--format", "formats", metavar="NAME", multiple=True,
                 help="requirements, pylock, constraints, conda-lock, explicit, pixi, environment."),
    click.option("--channel", "channels", metavar="NAME|URL", multiple=True, help="Only these conda channels."),
    click.option("--layout", metavar="NAME", help="Of the conda side: auto, native, mixed, wheels."),
    click.option("-o", "--output", "directory", metavar="DIR", help="Folder of the lockfiles; `.` without it."),
    click.option("--name", metavar="NAME", help="`train`: requirements-train.txt, pylock.train.toml; a named stack."),
    click.option("--check", is_flag=True, help="Write nothing; exit 1 where the files do not hold, naming each line."),
    click.option("--overwrite", is_flag=True, help="Replace files of these names that stackfix did not write, too."),
    click.option("--prove", is_flag=True, help="Simulate the stack's imports; refuse one that would not load."),
    click.option("--upgrade", is_flag=True, help="Do not keep the pins of the existing lock."),
    click.option("--upgrade-package", "upgrade_packages", metavar="NAME", multiple=True, help="Renew this one pin."),
    click.option("--index-url", metavar="URL", help="Package index; else uv's and pip's settings."),
    click.option("--extra-index-url", "extra_index_urls", metavar="URL", multiple=True, help="Looked at first."),
    click.option("--flash-attn-source", metavar="URL|DIR", help="Mirror of the release API, or a folder of wheels."),
    click.option("--matrix", "matrix_directory", metavar="DIR", help="Another copy of the matrix."),
    click.option("--torch-index", metavar="URL", help="Where pages of the torch index are read."),
    click.option("--allow-builds", metavar="NAME", multiple=True,
                 help="Build this project's sdist where only a build tells its requirements: runs its code."),
)


def lock_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """All options of `stackfix lock`, in the order of its help."""
    for decorate in reversed(LOCK_OPTIONS):
        function = decorate(function)
    return function
