"""uv's settings that say where to look: UV_* variables, then files: the project's, the user's, the machine's.

As in uv 0.13: variables win over files; lists of several files are joined and of single values the first counts;
indexes of `[[index]]` come before those of `extra-index-url`, and of two with one name the first counts alone; what
`[pip]` says wins over the same file's top level, since a lock is made as `uv pip compile` makes one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from stackfix.errors import BadInput
from stackfix.quick import dataclass
from stackfix.sources.records import AskedBySettings, IndexPin, IndexPolicy, UploadLimit
from stackfix.sources.uv_entries import UvIndex, entries_of, first_of_name, named_entry
from stackfix.sources.uv_project import Level, UvProject, find_project, parse_toml
from stackfix.sources.uv_sources import pins_of
from stackfix.sources.uv_values import (
    constraints_of,
    ignored_of,
    is_set,
    keyring_of,
    limits_of,
    notes_of,
    number_of,
    policies_of,
    project_name,
    text_of,
    texts_of,
)

ReadText = Callable[[Path], "str | None"]
Named = tuple[str, str]             # (where it is set, address)


@dataclass(frozen=True, slots=True, kw_only=True)
class UvSettings:
    """What uv is told. `default` and `extra` in order of priority."""

    default: tuple[Named, ...]
    no_default: bool                # the default index is explicit: it serves pinned projects alone
    extra: tuple[Named, ...]
    flat_default: tuple[Named, ...]     # pages of links and folders in place of it, and beside it: not followed
    flat_extra: tuple[Named, ...]
    ignored: tuple[str, ...]
    notes: tuple[str, ...]
    pins: tuple[IndexPin, ...]
    policies: tuple[IndexPolicy, ...]
    limits: tuple[UploadLimit, ...]
    constraints: tuple[AskedBySettings, ...]
    keyring: bool | None            # None: nothing is said of it
    cert: str | None
    timeout: float | None
    retries: int | None


def read_uv_settings(environ: Mapping[str, str], home: Path, read: ReadText, platform: str,
                     project: Path | None = None) -> UvSettings:
    """Settings of uv in force. `project`: the folder whose project counts. Raises BadInput for what makes no sense."""
    found = UvProject(config=None, owners=()) if project is None else find_project(
        project, read, config=not is_set(environ.get("UV_NO_CONFIG")) and not environ.get("UV_CONFIG_FILE"))
    levels = [*([found.config] if found.config is not None else []), *_machine_levels(environ, home, read, platform)]
    tables = [*_pip_tables(levels), *levels]
    named = [*_named(environ, "UV_DEFAULT_INDEX", default=True), *_named(environ, "UV_INDEX")]
    extra_urls = [(name, url) for name in ("UV_EXTRA_INDEX_URL",) for url in environ.get(name, "").split()]
    entries = first_of_name([*named, *(UvIndex(origin=name, url=url) for name, url in extra_urls),
                             *(entry for level in tables for entry in entries_of(level.table, level.origin, environ))])
    usable = [entry for entry in entries if not entry.flat]
    told = [*usable, *(entry for level in found.owners for entry in entries_of(level.table, level.origin, environ))]
    defaults = [entry for entry in usable if entry.default]
    flat = [entry for entry in entries if entry.flat and not entry.explicit]
    in_force = next((entry for entry in entries if entry.default), None) if not environ.get("UV_INDEX_URL") else None
    pins = _pins(environ, found, levels, named)
    default = [(entry.origin, entry.url) for entry in defaults if not entry.explicit]
    if environ.get("UV_INDEX_URL"):
        default.insert(1 if environ.get("UV_DEFAULT_INDEX") else 0, ("UV_INDEX_URL", environ["UV_INDEX_URL"].strip()))
    default += [(level.origin, url) for level in tables if (url := text_of(level, "index-url")) is not None]
    return UvSettings(
        default=tuple(default), no_default=bool(defaults) and defaults[0].explicit and not _from_variable(default),
        extra=(*((entry.origin, entry.url) for entry in usable if not entry.default and not entry.explicit),
               *((level.origin, url) for level in tables for url in texts_of(level, "extra-index-url"))),
        flat_default=tuple((entry.origin, entry.url) for entry in flat if entry is in_force),
        flat_extra=tuple((entry.origin, entry.url) for entry in flat if not entry.default),
        ignored=tuple(ignored_of(environ, entries, levels, pins)), notes=tuple(notes_of(environ, levels)),
        pins=pins, policies=tuple(policies_of(told)),
        limits=tuple(limits_of(environ, levels, tables, told)), constraints=tuple(constraints_of(found.config)),
        keyring=keyring_of(environ, tables), cert=environ.get("SSL_CERT_FILE") or None,
        timeout=number_of(environ, "UV_HTTP_TIMEOUT", 0.1, 3600.0),
        retries=None if (tries := number_of(environ, "UV_HTTP_RETRIES", 0, 20)) is None else int(tries))


def config_files(environ: Mapping[str, str], home: Path, platform: str) -> tuple[Path, ...]:
    """uv.toml of the user, then those that may be the machine's: of them the first that is there counts."""
    if platform == "win32":
        return (Path(environ.get("APPDATA") or home / "AppData" / "Roaming") / "uv" / "uv.toml",
                Path(environ.get("SYSTEMDRIVE", "C:") + "/") / "ProgramData" / "uv" / "uv.toml")
    user = Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "uv" / "uv.toml"
    wide = (environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep)
    return (user, *(Path(part) / "uv" / "uv.toml" for part in wide if part), Path("/etc/uv/uv.toml"))


def _machine_levels(environ: Mapping[str, str], home: Path, read: ReadText, platform: str) -> Iterator[Level]:
    """The user's and the machine's file, or the one that UV_CONFIG_FILE names in place of all others."""
    if environ.get("UV_CONFIG_FILE"):
        path = Path(environ["UV_CONFIG_FILE"])
        text = read(path)
        if text is None:
            raise BadInput(f"UV_CONFIG_FILE {path}", "no such file", "correct it, or unset it")
        yield Level(origin=str(path), table=parse_toml(text, str(path)))
        return
    if is_set(environ.get("UV_NO_CONFIG")):
        return
    user, *machine = config_files(environ, home, platform)
    if (text := read(user)) is not None:
        yield Level(origin=str(user), table=parse_toml(text, str(user)))
    for path in machine:
        if (text := read(path)) is not None:
            yield Level(origin=str(path), table=parse_toml(text, str(path)))
            return


def _pip_tables(levels: Sequence[Level]) -> Iterator[Level]:
    for level in levels:
        table = level.table.get("pip")
        if table is not None and not isinstance(table, dict):
            raise BadInput(level.origin, "pip is no table", "correct it, or set UV_NO_CONFIG=1")
        if table:
            yield Level(origin=level.origin, table=table, of_project=level.of_project)


def _named(environ: Mapping[str, str], variable: str, *, default: bool = False) -> list[UvIndex]:
    return [named_entry(text, variable, environ, default=default) for text in environ.get(variable, "").split()]


def _from_variable(default: Sequence[Named]) -> bool:
    return bool(default) and default[0][0].startswith("UV_")


def _pins(environ: Mapping[str, str], found: UvProject, levels: Sequence[Level],
          named: Sequence[UvIndex]) -> tuple[IndexPin, ...]:
    if is_set(environ.get("UV_NO_SOURCES")) or any(level.table.get("no-sources") is True for level in levels):
        return ()
    without = environ.get("UV_NO_SOURCES_PACKAGE", "").replace(",", " ").split()
    without += [name for level in levels for name in texts_of(level, "no-sources-package")]
    return pins_of(found.owners, named, environ, without=frozenset(map(project_name, without)))
