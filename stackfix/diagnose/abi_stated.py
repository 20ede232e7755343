"""Which torch an extension says that it was built for: in its metadata, its version, its file name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from stackfix.diagnose.releases import admits
from stackfix.diagnose.situation import View
from stackfix.inspect.environment_records import Distribution

METADATA = "its metadata"
IN_NAME = re.compile(r"torch(\d+\.\d+)")                # flash_attn-2.5.7+cu122torch2.2cxx11abiFALSE
SHORT = re.compile(r"(?:^|[^a-z])pt(\d)(\d{1,2})")      # torch_scatter-2.1.2+pt23cu121
STRING_ABI = re.compile(r"cxx11abi(TRUE|FALSE)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """One statement about the torch that an extension was built for."""

    text: str                       # "its metadata requires torch==2.1.2"
    torch: str                      # specifier: "==2.1.2", "==2.2.*"
    source: str                     # "its metadata", "its file"


def stated_torch(view: View, distribution: Distribution | None) -> Iterator[Stated]:
    """All that states it, the surest first. What its symbols tell is another matter: abi_range."""
    if distribution is not None:
        yield from in_file_name(distribution)
        yield from in_metadata(view, distribution)
        yield from in_matrix(view, distribution)


def in_file_name(distribution: Distribution) -> Iterator[Stated]:
    """The local version, or the file that it was installed from."""
    url = distribution.origin.url if distribution.origin else ""
    for what, text in (("version", distribution.version), ("file", url.rpartition("/")[2])):
        if match := IN_NAME.search(text) or SHORT.search(text):
            minor = match[1] if "." in match[1] else f"{match[1]}.{match[2]}"
            yield Stated(text=f"its {what} says torch {minor}: {text}", torch=f"=={minor}.*", source=f"its {what}")


def in_metadata(view: View, distribution: Distribution) -> Iterator[Stated]:
    """What it requires of torch in this environment, all lines together."""
    from stackfix.abi.torch_required import torch_required

    python, machine = view.environment.python, view.situation.loader.machine.machine
    if python is not None:
        specifier = torch_required(distribution.requires, (), None, (machine,), python.minor)
        if specifier:
            yield Stated(text=f"its metadata requires torch{specifier}", torch=specifier, source=METADATA)


def in_matrix(view: View, distribution: Distribution) -> Iterator[Stated]:
    """What the matrix knows of the release."""
    from packaging.version import InvalidVersion

    from stackfix.matrix.query import companion

    try:
        row = companion(view.matrix, distribution.name, distribution.version.partition("+")[0])
    except InvalidVersion:
        return
    if row is not None and row.torch is not None and not any(in_metadata(view, distribution)):
        yield Stated(text=f"{distribution.name} {row.version} is built for torch{row.torch} ({row.source})",
                     torch=row.torch, source="the matrix")


def disagrees(statement: Stated, release: str) -> bool:
    """Whether a statement names another torch than the installed one."""
    return not admits(statement.torch, release)


def stated_string_abi(distribution: Distribution | None) -> str | None:
    """The std::string ABI that a file name states: "new", "old"."""
    if distribution is None:
        return None
    url = distribution.origin.url if distribution.origin else ""
    match = STRING_ABI.search(distribution.version) or STRING_ABI.search(url)
    return None if match is None else "new" if match[1].upper() == "TRUE" else "old"
