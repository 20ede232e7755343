"""[tool.uv.sources]: which project comes from which index, and which from no index at all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from stackfix.errors import BadInput
from stackfix.sources.records import IndexPin
from stackfix.sources.uv_entries import UvIndex, entries_of
from stackfix.sources.uv_project import Level, table_of
from stackfix.sources.uv_values import project_name

_ELSEWHERE = ("git", "url", "path", "workspace")
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")


def pins_of(owners: Sequence[Level], named: Iterable[UvIndex], environ: Mapping[str, str], *,
            without: frozenset[str] = frozenset()) -> tuple[IndexPin, ...]:
    """Where the project's sources say that its requirements come from. Raises BadInput.

    `owners`: the project, then its workspace, which counts for what the project says nothing of. `named`: indexes of
    variables, whose names win; user and system settings name none for sources, as in uv. `without`: projects whose
    sources are not to count.
    """
    known = {entry.name: entry for level in reversed(owners) for entry in reversed(list(entries_of(
        level.table, level.origin, environ)))}
    known.update({entry.name: entry for entry in named})
    pins: dict[str, tuple[IndexPin, ...]] = {}
    for level in owners:
        own: dict[str, tuple[IndexPin, ...]] = {}
        for name, value in table_of(level.table.get("sources"), level.origin, "sources").items():
            if _NAME.fullmatch(name) is None:
                raise BadInput(level.origin, f"sources names {name[:80]!r}, which is no project's name")
            project = project_name(name)
            if project not in without:
                own[project] = tuple(_pins(project, value, known, level.origin))
        pins = {**own, **pins}
    return tuple(pin for of_project in pins.values() for pin in of_project)


def _pins(project: str, value: object, known: Mapping[str | None, UvIndex], origin: str) -> Iterator[IndexPin]:
    items = value if isinstance(value, list) else [value]
    if not items:
        raise BadInput(origin, f"sources.{project} is empty", "name an index, or leave it out")
    for item in items:
        if not isinstance(item, dict):
            raise BadInput(origin, f"sources.{project} is no table", 'write it as { index = "name" }')
        yield _pin(project, item, known, origin)


def _pin(project: str, item: Mapping[str, Any], known: Mapping[str | None, UvIndex], origin: str) -> IndexPin:
    marker = item.get("marker")
    if marker is not None and not isinstance(marker, str):
        raise BadInput(origin, f"sources.{project} has a marker that is no text", "put it in quotes")
    condition = next((f"{key} {item[key]}" for key in ("extra", "group") if isinstance(item.get(key), str)), None)
    kinds = [key for key in ("index", *_ELSEWHERE) if key in item]
    if len(kinds) != 1 or (kinds[0] == "index" and not isinstance(item["index"], str)):
        raise BadInput(origin, f"sources.{project} names not exactly one of index, {', '.join(_ELSEWHERE)}",
                       'write it as { index = "name" }')
    if kinds[0] != "index":
        return IndexPin(project=project, name=kinds[0], url=None, marker=marker, condition=condition, origin=origin)
    entry = known.get(item["index"])
    if entry is None:
        raise BadInput(origin, f"sources.{project} names the index {item['index'][:80]!r}, which is not declared there",
                       "add an [[tool.uv.index]] of that name to that file: those of users and machines do not count")
    if entry.flat:
        raise BadInput(origin, f"sources.{project} names the index {entry.name}, which is flat: a page of links or a"
                       " folder, and no package index", "name an index of the simple form, or set UV_NO_SOURCES=1")
    return IndexPin(project=project, name=entry.name or "", url=entry.url.partition("#")[0].rstrip("/"), marker=marker,
                    condition=condition, origin=origin)
