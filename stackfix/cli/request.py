"""`LockOptions` -> `StackRequest`: values checked, requirement files read, `auto` looked up on this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

from stackfix.cli.options import LockOptions
from stackfix.cli.request_environment import (
    is_environment_yml,
    merged_channels,
    merged_cuda,
    merged_platforms,
    merged_pythons,
    read_environment,
    said_places,
)
from stackfix.errors import BadInput, Unreachable
from stackfix.quick import dataclass
from stackfix.request.requirements_in import IndexOptions, read_requirements, requirement_text
from stackfix.request.values import (
    check_driver,
    check_glibc,
    check_gpu_arch,
    check_layout,
    check_macos,
    check_python,
)
from stackfix.request.versions import torch_specifier, version_specifier
from stackfix.resolve.records import Requirement, StackRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRequest:
    """The request, what requirement files state of the index, and the files that were read."""

    stack: StackRequest
    index: IndexOptions
    inputs: tuple[Path, ...]


def read_request(options: LockOptions, *, kept: tuple[tuple[str, str], ...]) -> ReadRequest:
    """What is asked, checked. Raises BadInput for the first bad value."""
    if options.flash_attn is not None and options.no_flash_attn:
        raise BadInput("--flash-attn and --no-flash-attn", "exclude each other", "give one of them")
    from_files, index, inputs = read_files(options)
    environments = tuple(read_environment(Path(options.base, name), options)
                         for name in options.requirement_files if is_environment_yml(name))
    for one in environments:
        index = index.then(one.index)
    stack = StackRequest(
        torch=torch_specifier(options.torch, "--torch") if options.torch is not None else None,
        cuda=merged_cuda(options.cuda, environments),
        pythons=merged_pythons(distinct(check_python(python) for python in options.pythons), environments),
        default_python=f"{sys.version_info.major}.{sys.version_info.minor}",
        platforms=merged_platforms(options.platforms, environments) or StackRequest().platforms,
        glibc=check_glibc(options.glibc) if options.glibc is not None else StackRequest().glibc,
        macos=check_macos(options.macos) if options.macos is not None else StackRequest().macos,
        flash_attn=version_specifier(options.flash_attn, "--flash-attn") if options.flash_attn is not None else None,
        no_flash_attn=options.no_flash_attn,
        requirements=(*typed_requirements(options), *from_files,
                      *(requirement for one in environments for requirement in one.requirements)),
        conda_lines=tuple(line for one in environments for line in one.conda_lines),
        driver=driver_of(options.driver) if options.driver is not None else None,
        # set and empty means a machine without a driver, as in conda
        no_driver=options.driver is None and os.environ.get("CONDA_OVERRIDE_CUDA", "-").strip() == "",
        cuda_compat=options.cuda_compat,
        gpu_archs=gpu_archs_of(options.gpu_archs),
        exclude_newer=instant_of(options.exclude_newer) if options.exclude_newer is not None else None,
        kept=kept,
        layout=check_layout(options.layout) if options.layout is not None else None,
        channels=merged_channels(options.channels, environments),
        places=tuple(said_places(options, environments)),
    )
    read = (file for one in environments for file in one.files)
    return ReadRequest(stack=stack, index=index, inputs=(*inputs, *read))


def distinct(values: Iterator[str]) -> tuple[str, ...]:
    """The values without repetition, in the order given."""
    return tuple(dict.fromkeys(values))


def typed_requirements(options: LockOptions) -> Iterator[Requirement]:
    """--with and --constraint values."""
    for text in options.with_:
        yield Requirement(text=text.strip(), origin=f"--with {text.strip()}")
    for text in options.constraints:
        origin = f"--constraint {text.strip()}"
        requirement_text(text.strip(), origin, (), constraint=True)
        yield Requirement(text=text.strip(), origin=origin, constraint=True)


def instant_of(value: str) -> str:
    """An ISO 8601 date or time as `2026-01-31T00:00:00Z`; a date is its first moment, a time without offset is UTC."""
    try:
        moment = datetime.fromisoformat(value.strip().replace("Z", "+00:00").replace("z", "+00:00"))
        moment = moment.replace(tzinfo=moment.tzinfo or timezone.utc).astimezone(timezone.utc)
    except (ValueError, OverflowError):
        raise BadInput(f"--exclude-newer {value}", "is not an ISO 8601 date or time",
                       "write 2026-01-31 or 2026-01-31T12:00:00Z") from None
    return moment.replace(microsecond=0, tzinfo=None).isoformat() + "Z"     # strftime's %Y is not always four digits


def driver_of(value: str) -> str:
    """The driver version asked for; `auto` is this machine's. Raises Unreachable where none is loaded."""
    if value != "auto":
        return check_driver(value)
    from stackfix.inspect.driver import read_driver_version

    found = read_driver_version()
    if found is None:
        raise Unreachable("--driver auto", "no NVIDIA kernel module is loaded on this machine",
                          "give the driver version of the machine the lock is for")
    return found


def gpu_archs_of(values: tuple[str, ...]) -> tuple[str, ...]:
    """The architectures asked for; `auto` is those of this machine's GPUs. Raises Unreachable where there is none."""
    archs: list[str] = []
    for value in values:
        if value != "auto":
            archs.append(check_gpu_arch(value))
            continue
        from stackfix.inspect.driver import read_gpu_archs

        found = read_gpu_archs()
        if not found:
            raise Unreachable("--gpu-arch auto", "nvidia-smi lists no GPU on this machine",
                              "give the architecture of the machine the lock is for, such as sm_90")
        archs.extend(found)
    return tuple(dict.fromkeys(archs))


def read_files(options: LockOptions) -> tuple[tuple[Requirement, ...], IndexOptions, tuple[Path, ...]]:
    """Requirements of all -r files, the index settings they state (the first file wins), and the files read.

    An environment.yml is not among them.
    """
    requirements: list[Requirement] = []
    files: list[Path] = []
    index = IndexOptions()
    for name in options.requirement_files:
        refuse_no_file(name)
        if is_environment_yml(name):
            continue
        read = read_requirements(Path(options.base, name), os.environ)
        requirements.extend(read.requirements)
        files.extend(read.files)
        index = index.then(read.index)
    return tuple(requirements), index, tuple(files)


def refuse_no_file(name: str) -> None:
    """Raises BadInput for what pip takes as a requirements file and is no file."""
    if name == "-":
        raise BadInput("-r -", "standard input is not read", "write it to a file and name that")
    if "://" in name:
        raise BadInput(f"-r {name}", "names an address; only files are read", "download it, and name it")
