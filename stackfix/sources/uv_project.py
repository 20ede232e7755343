"""The settings of uv that a project states: which file of which folder counts, and the project's own sources.

uv's rules (its documentation, "Configuration files", and what uv 0.13 does): the search begins at the root of the
workspace, else at the nearest folder with a [project], else where the command runs, and goes up until a folder has a
`uv.toml` or a pyproject.toml with [tool.uv]; `uv.toml` wins. Sources come from the project's own pyproject.toml, then
from the workspace's, whatever the settings come from.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from stackfix.errors import BadInput
from stackfix.quick import dataclass

ReadText = Callable[[Path], "str | None"]
PYPROJECT = "pyproject.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One table of settings. `origin`: how its file is named to the user."""

    origin: str
    table: dict[str, Any]
    of_project: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class UvProject:
    """What uv's rules find from a folder on."""

    config: Level | None            # the project's settings
    owners: tuple[Level, ...]       # [tool.uv] of the project, then of its workspace: for sources


def find_project(folder: Path, read: ReadText, *, config: bool = True) -> UvProject:
    """The project's settings from `folder` on; with `config` off, its sources alone. Raises BadInput."""
    reader = _Reader(folder, read)
    own = next((at for at in _upwards(folder) if reader.pyproject(at) is not None), None)
    root = None if own is None else reader.workspace_of(own)
    owners = [] if own is None else [own, *([root] if root is not None and root != own else [])]
    start = root or folder
    return UvProject(
        config=next((level for at in _upwards(start) if (level := reader.config(at)) is not None), None)
        if config else None,
        owners=tuple(level for at in owners if (level := reader.tool_uv(at)) is not None))


def parse_toml(text: str, origin: str) -> dict[str, Any]:
    """The document. Raises BadInput naming the file."""
    from stackfix.sources.toml import TOMLDecodeError, loads

    try:
        return loads(text)
    except (TOMLDecodeError, RecursionError, ValueError) as fault:
        reason = "nested too deeply" if isinstance(fault, RecursionError) else str(fault)
        raise BadInput(origin, f"is no valid TOML ({reason[:200]})", "correct it, or set UV_NO_CONFIG=1") from None


def table_of(value: object, origin: str, key: str) -> dict[str, Any]:
    """The table, an empty one where there is none. Raises BadInput for another kind of value."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadInput(origin, f"{key} is no table", "correct it, or set UV_NO_CONFIG=1")
    return value


def _upwards(folder: Path) -> Iterator[Path]:
    yield folder
    yield from folder.parents


class _Reader:
    """Files of the folders on the way up, each read once."""

    def __init__(self, folder: Path, read: ReadText) -> None:
        self._folder, self._read = folder, read
        self._documents: dict[Path, dict[str, Any] | None] = {}

    def name(self, path: Path) -> str:
        """The file as it is named to the user: relative to where the command runs."""
        return os.path.relpath(path, self._folder)

    def document(self, path: Path) -> dict[str, Any] | None:
        if path not in self._documents:
            text = self._read(path)
            self._documents[path] = None if text is None else parse_toml(text, self.name(path))
        return self._documents[path]

    def pyproject(self, folder: Path) -> dict[str, Any] | None:
        return self.document(folder / PYPROJECT)

    def tool_uv(self, folder: Path) -> Level | None:
        """[tool.uv] of the folder's pyproject.toml."""
        document = self.pyproject(folder)
        if document is None:
            return None
        name = self.name(folder / PYPROJECT)
        tool = table_of(document.get("tool"), name, "[tool]")
        if "uv" not in tool:
            return None
        return Level(origin=f"{name} [tool.uv]", table=table_of(tool["uv"], name, "[tool.uv]"), of_project=True)

    def config(self, folder: Path) -> Level | None:
        """The settings that stand in this folder."""
        path = folder / "uv.toml"
        document = self.document(path)
        if document is not None:
            return Level(origin=self.name(path), table=document, of_project=True)
        return self.tool_uv(folder)

    def workspace_of(self, own: Path) -> Path | None:
        """The folder from which the search for settings begins; None where no project is there."""
        document, level = self.pyproject(own) or {}, self.tool_uv(own)
        table = {} if level is None else level.table
        if table.get("managed") is False:
            return None
        if "workspace" in table:
            return own
        if "project" not in document:
            return None
        for above in own.parents:
            outer = self.tool_uv(above) if self.pyproject(above) is not None else None
            if outer is not None and "workspace" in outer.table:
                return above if _is_member(own.relative_to(above).parts, outer) else own
        return own


def _is_member(parts: tuple[str, ...], outer: Level) -> bool:
    workspace = table_of(outer.table["workspace"], outer.origin, "workspace")
    return _matches(parts, workspace.get("members")) and not _matches(parts, workspace.get("exclude"))


def _matches(parts: tuple[str, ...], patterns: object) -> bool:
    texts = [text for text in patterns if isinstance(text, str)] if isinstance(patterns, list) else []
    return any(_fits(parts, tuple(part for part in text.split("/") if part not in ("", "."))) for text in texts)


def _fits(parts: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    """Whether a path matches a pattern: `*` within one part, `**` any number of parts."""
    reached = {0}                   # how many parts may be used up so far: no pattern takes long
    for piece in pattern:
        if piece == "**":
            reached = set(range(min(reached), len(parts) + 1)) if reached else set()
        else:
            reached = {at + 1 for at in reached if at < len(parts) and fnmatchcase(parts[at], piece)}
    return len(parts) in reached
