"""What other patch releases have otherwise than the newest of their minor: rows of `patches.tsv`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from stackfix.abi.book_patches import COLUMNS
from stackfix.almanac.torch_exports import Exports
from stackfix.almanac.torch_table import Table, minor_of, number_of, union
from stackfix.errors import BadInput

HINT = "Make the file anew with `python -m stackfix.almanac torch --make`."

RELEASE = re.compile(r"[0-9]{1,4}(?:\.[0-9]{1,4}){2}")

PatchRow = tuple[str, str, str, str]    # version, "+" (it exports the key, the newest patch does not) or "-", key, who


def differences(newest: Exports, other: Exports) -> list[PatchRow]:
    """Where `other`, an older patch of the minor, is not as `newest`. Raises BadInput where std::string differs."""
    if other.string_abi != newest.string_abi:
        raise BadInput(other.wheel.file, f"speaks of the {other.string_abi} std::string, and {newest.wheel.file} of "
                       f"the {newest.string_abi} one", "one column cannot stand for both; keep one of them out")
    rows = [(other.wheel.version, "+", key, " ".join(sorted(other.names[key])))
            for key in other.names.keys() - newest.names.keys()]
    rows += [(other.wheel.version, "-", key, " ".join(sorted(newest.names[key])))
             for key in newest.names.keys() - other.names.keys()]
    return rows


def in_order(rows: Iterable[PatchRow]) -> list[PatchRow]:
    """By release, key and sign."""
    return sorted(rows, key=lambda row: (number_of(row[0]), row[2], row[1]))


def parse_rows(text: str, name: str) -> list[PatchRow]:
    """The rows of a text. Raises BadInput with the line."""
    first, *lines = text.split("\n")
    if tuple(first.split("\t")) != COLUMNS or not lines or lines.pop():
        raise BadInput(name, "is no table of patch releases, or is cut short", HINT)
    rows: list[PatchRow] = []
    for number, line in enumerate(lines, 2):
        parts = line.split("\t")
        if len(parts) != 4 or parts[1] not in {"+", "-"} or not RELEASE.fullmatch(parts[0]):
            raise BadInput(f"{name}:{number}", "is no line about a patch release", HINT)
        rows.append((parts[0], parts[1], parts[2], parts[3]))
    return rows


def contradictions(rows: Sequence[PatchRow], table: Table) -> list[str]:
    """What of these rows the table of the newest patches does not bear out."""
    places = {each.minor: place for place, each in enumerate(table.releases)}
    patches = {version for each in table.releases for version in each.patches}
    found = [] if in_order(rows) == list(rows) else ["the rows are not sorted"]
    for version, sign, key, _ in rows:
        if version not in patches:
            found.append(f"{version} is no patch of a minor of the table")
            continue
        exported = union(table.rows.get(key, {})) >> places[minor_of(version)] & 1
        if exported == (sign == "+"):
            found.append(f"{version} {sign} {key}: its newest patch has it the same way")
    return found


__all__ = ["PatchRow", "contradictions", "differences", "in_order", "parse_rows"]
