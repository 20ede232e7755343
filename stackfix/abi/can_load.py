"""Whether compiled files can load with one concrete torch release, by the names that they ask for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from stackfix.abi.flavour import NEW
from stackfix.abi.records import BookRelease, CompiledFile, LoadVerdict, TorchBook
from stackfix.abi.torch_asked import Asked, Patch, asked_of, only_in_cuda, patch_of, reasons, string_abi_of
from stackfix.errors import BadInput

CAN, CANNOT, UNDECIDED = "can load", "cannot load", "cannot tell"
VERSION = re.compile(r"(?P<major>[0-9]{1,4})\.(?P<minor>[0-9]{1,4})(?P<rest>[0-9a-z.]*)(?P<local>\+[0-9A-Za-z._-]+)?")
READ_MACHINE = "x86_64"         # of the wheels that the almanac is made of


class Compared(NamedTuple):
    """The release in the almanac that stands for the one that is asked about."""

    release: BookRelease
    patch: Patch                # what is otherwise in it than in `release`
    why: str | None             # it is not the one that is asked about: "newer", "older" or "unread"


def can_load(files: Sequence[CompiledFile], book: TorchBook, release: str, *, string_abi: str | None = None,
             cuda: bool | None = None) -> LoadVerdict:
    """The verdict on a torch release: "2.3.1", "2.6.0+cu126". Raises BadInput for what is no release.

    `string_abi` ("old" or "new") and `cuda` are those of the build, where they are known; else those of the index's
    wheel, and with a local version: unknown, and a CUDA build unless it says "+cpu".
    """
    compared = compare_with(release, book)
    asked = asked_of(files, book)
    read_machine = all(file.elf.machine == READ_MACHINE for file in files)
    if string_abi is None and "+" not in release and read_machine and compared.why is None:
        string_abi = compared.release.string_abi
    other = of_other_string(asked, string_abi)
    if string_abi == NEW and compared.why is None:
        other |= {each.name for each in asked if compared.release.minor in each.tagged}
    absent = {each.name for each in asked if not compared.patch.has(each, compared.release.minor)}
    only_cuda = {each.name for each in only_in_cuda(asked, book)} if is_without_cuda(release, cuda) else set[str]()
    gone = absent | other | only_cuda
    lacks = [each for each in asked if each.name in gone]
    why = None if not asked or other else compared.why or (None if read_machine else "machine")
    if why is None and not lacks and string_abi is None and string_abi_of(asked, book):
        why = "string-abi"
    return LoadVerdict(
        release=release, verdict=UNDECIDED if why else CANNOT if lacks else CAN, read=compared.patch.version, why=why,
        missing=reasons(lacks),
        other_string=tuple(each.name for each in lacks if each.name in other and each.name not in absent),
        only_cuda=tuple(each.name for each in lacks if each.name in only_cuda and each.name not in absent))


def compare_with(release: str, book: TorchBook) -> Compared:
    """The release itself where it was read, else the nearest below; the oldest, where there is none."""
    match = VERSION.fullmatch(release)
    if match is None or not book.releases:
        raise BadInput(f"torch {release[:60]}", "is no release of torch", "Name one as `2.3.1` or `2.6.0+cu126`.")
    minor = f"{match['major']}.{match['minor']}"
    public = f"{minor}{match['rest'] or '.0'}"
    known = {each.minor: each for each in book.releases}
    if minor in known:
        found = known[minor]
        if public in found.patches:
            return Compared(found, patch_of(public, book.exceptions(public)), None)
        return Compared(found, patch_of(found.version, ()), None if public == found.version else "unread")
    number = by_number(minor)
    below = [each for each in book.releases if by_number(each.minor) < number]
    found = below[-1] if below else book.releases[0]
    why = "older" if not below else "newer" if found is book.releases[-1] else "unread"
    return Compared(found, patch_of(found.version, ()), why)


def of_other_string(asked: Sequence[Asked], string_abi: str | None) -> set[str]:
    """Names that no build with this std::string exports, whatever its release; without it, if both kinds are asked."""
    flavours = {each.flavour for each in asked} - {None}
    if string_abi is None and len(flavours) < 2:
        return set()
    return {each.name for each in asked if each.flavour not in {None, string_abi}}


def is_without_cuda(release: str, cuda: bool | None) -> bool:       # noqa: FBT001 - None: by its version
    return "+cpu" in release if cuda is None else not cuda


def by_number(minor: str) -> tuple[int, ...]:
    return tuple(map(int, minor.split(".")))


__all__ = ["CAN", "CANNOT", "UNDECIDED", "can_load"]
