"""A request as the command line that asks it: in full for offers, and as the user wrote it for a lockfile's header."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path

from stackfix.cli.options import LockOptions
from stackfix.resolve.records import StackRequest

ELSEWHERE = ("/", "~", "\\")        # a path that begins so is one of this machine


def request_arguments(request: StackRequest) -> list[str]:
    """The options of `stackfix lock` that ask `request`, every requirement spelled out as --with or --constraint."""
    arguments: list[str] = []

    def add(flag: str, value: str | None) -> None:
        if value is not None:
            arguments.extend((flag, value))

    add("--torch", short_version(request.torch))
    add("--cuda", request.cuda)
    for python in request.pythons:
        add("--python", python)
    for platform in request.platforms if request.platforms != ("linux-64",) else ():
        add("--platform", platform)
    add("--glibc", request.glibc if request.glibc != StackRequest().glibc else None)
    add("--macos", request.macos if request.macos != StackRequest().macos else None)
    add("--flash-attn", short_version(request.flash_attn))
    if request.no_flash_attn:
        arguments.append("--no-flash-attn")
    for requirement in request.requirements:
        add("--constraint" if requirement.constraint else "--with", requirement.text)
    add("--driver", request.driver)
    if request.cuda_compat:
        arguments.append("--cuda-compat")
    for arch in request.gpu_archs:
        add("--gpu-arch", arch)
    add("--exclude-newer", request.exclude_newer)
    for channel in request.channels:
        add("--channel", shown_channel(channel))
    add("--layout", request.layout)
    return arguments


def shown_channel(text: str) -> str:
    """The channel as it may be shown: without a login and without a token."""
    if "://" not in text:
        return text
    from stackfix.sources.conda_names import public_address

    return public_address(text)


def header_arguments(asked: LockOptions, request: StackRequest, name: str | None) -> list[str]:
    """The options that give this lock again, for its header.

    `asked` is the command line, `request` what came of it with its Python decided: the default one is another
    elsewhere. What a project file says stays there: `--name` leads to it. Files are named as the user did, those given
    by an absolute path by their last part. Nothing of the index is said: where a machine looks is its own setting.
    """
    if asked.asks_for_a_stack():
        typed = tuple(one for one in request.requirements if one.origin.startswith(("--with ", "--constraint ")))
        arguments = request_arguments(request.with_(requirements=typed))
        for file in asked.requirement_files:
            arguments += ("-r", Path(file).name if file.startswith(ELSEWHERE) else file)
    else:
        arguments = request_arguments(StackRequest(
            glibc=request.glibc if asked.glibc is not None else StackRequest().glibc,
            macos=request.macos if asked.macos is not None else StackRequest().macos,
            exclude_newer=request.exclude_newer if asked.exclude_newer is not None else None,
            channels=asked.channels, layout=request.layout if asked.layout is not None else None,
        ))
    for option, values in (("--allow-builds", asked.allow_builds), ("--format", asked.formats)):
        for value in values:
            arguments += (option, value)
    for flag, path in (("-o", asked.directory), ("--matrix", asked.matrix_directory), ("--name", name)):
        if path is not None and not path.startswith(ELSEWHERE):
            arguments += (flag, path)
    return arguments


def short_version(specifier: str | None) -> str | None:
    """`2.3` for `==2.3.*` and `2.3.1` for `==2.3.1`: the way a user writes it; other specifiers unchanged."""
    if specifier is None or not specifier.startswith("==") or "," in specifier or specifier.startswith("==="):
        return specifier
    short = specifier[2:].removesuffix(".*")
    # "==2.3" is one exact version and "==2.3.1.*" a prefix of three parts: neither has a short form
    exact = not specifier.endswith(".*")
    return short if exact == (short.count(".") >= 2) else specifier


def join_command(arguments: Iterable[str]) -> str:
    """One shell line, quoted where the shell needs it."""
    return shlex.join(["stackfix", "lock", *arguments])
