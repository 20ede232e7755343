"""Which torch an extension says that it was built for: in its metadata, its version, its file name, its names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from stackfix.diagnose.abi_marks import minors_of
from stackfix.diagnose.releases import admits
from stackfix.diagnose.situation import View
from stackfix.inspect.environment_records import Distribution

TORCH = re.compile(r"torch\s*\(?\s*((?:===?|~=|!=|<=|>=|<|>)[^;)]*)", re.IGNORECASE)
IN_NAME = re.compile(r"torch(\d+\.\d+)")                # flash_attn-2.5.7+cu122torch2.2cxx11abiFALSE
SHORT = re.compile(r"(?:^|[^a-z])pt(\d)(\d{1,2})")      # torch_scatter-2.1.2+pt23cu121
STRING_ABI = re.compile(r"cxx11abi(TRUE|FALSE)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """One statement about the torch that an extension was built for."""

    text: str                       # "its metadata requires torch==2.1.2"
    torch: str | None               # specifier: "==2.1.2", "==2.2.*"


def stated_torch(view: View, distribution: Distribution | None, names: tuple[str, ...]) -> Iterator[Stated]:
    """All that tells it, the surest first. `names`: the symbols that the extension's files ask of torch."""
    if distribution is not None:
        yield from in_file_name(distribution)
        yield from in_metadata(distribution)
        yield from in_matrix(view, distribution)
    minors = minors_of(names)
    if minors is not None:
        yield Stated(text=f"the names that it asks for are those of torch {minors}: {minors.names[0]}",
                     torch=",".join((*((f">={minors.first[0]}.{minors.first[1]}",) if minors.first else ()),
                                     *((f"<{minors.last[0]}.{minors.last[1] + 1}",) if minors.last else ()))))


def in_file_name(distribution: Distribution) -> Iterator[Stated]:
    """The local version, or the file that it was installed from."""
    url = distribution.origin.url if distribution.origin else ""
    for what, text in (("version", distribution.version), ("file", url.rpartition("/")[2])):
        if match := IN_NAME.search(text) or SHORT.search(text):
            minor = match[1] if "." in match[1] else f"{match[1]}.{match[2]}"
            yield Stated(text=f"its {what} says torch {minor}: {text}", torch=f"=={minor}.*")


def in_metadata(distribution: Distribution) -> Iterator[Stated]:
    """What it requires of torch."""
    for line in distribution.requires:
        text, _, marker = line.partition(";")
        if (match := TORCH.match(text)) and "extra" not in marker:
            specifier = match[1].replace(" ", "")
            yield Stated(text=f"its metadata requires torch{specifier}", torch=specifier)


def in_matrix(view: View, distribution: Distribution) -> Iterator[Stated]:
    """What the matrix knows of the release."""
    from packaging.version import InvalidVersion

    from stackfix.matrix.query import companion

    try:
        row = companion(view.matrix, distribution.name, distribution.version.partition("+")[0])
    except InvalidVersion:
        return
    if row is not None and row.torch is not None and not any(in_metadata(distribution)):
        yield Stated(text=f"{distribution.name} {row.version} is built for torch{row.torch} ({row.source})",
                     torch=row.torch)


def disagrees(statement: Stated, release: str) -> bool:
    """Whether a statement names another torch than the installed one."""
    return statement.torch is not None and not admits(statement.torch, release)


def stated_string_abi(distribution: Distribution | None) -> str | None:
    """The std::string ABI that a file name states: "new", "old"."""
    if distribution is None:
        return None
    url = distribution.origin.url if distribution.origin else ""
    match = STRING_ABI.search(distribution.version) or STRING_ABI.search(url)
    return None if match is None else "new" if match[1].upper() == "TRUE" else "old"
