"""`.condarc` files and CONDA_* variables, in conda's order of precedence.

Source: conda's documentation, "Configuration", searching for .condarc. Lists of several places are joined, the one of
the higher place first; of maps each key, and of everything else the whole, is the higher place's. A key that a file
marks `#!final` is taken from no higher place. Variables are the highest place, files the lower ones.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stackfix.errors import BadInput

ReadText = Callable[[Path], "str | None"]
_NAMES = (".condarc", "condarc", "condarc.d")
_LARGEST = 1 << 20                  # characters; a condarc is a page at most
_FINAL = re.compile(r"^(?P<key>[A-Za-z_]+)\s*:.*#!\s*final\s*$", re.MULTILINE)
# Variables that conda names after a setting of ours; a list is written with commas.
VARIABLES = ("channels", "channel_alias", "default_channels", "channel_priority", "offline", "ssl_verify",
             "allowlist_channels", "denylist_channels", "override_channels_enabled", "remote_connect_timeout_secs",
             "remote_read_timeout_secs", "remote_max_retries")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """One value of one place."""

    origin: str                     # "/home/me/.condarc" or "CONDA_CHANNELS"
    value: Any                      # as YAML has it; text of a variable


def read_stated(environ: Mapping[str, str], home: Path, read: ReadText, *, prefix: Path | None = None,
                system: Path = Path("/"), platform: str = sys.platform) -> dict[str, list[Stated]]:
    """What each setting is said to be, the highest place first. Raises BadInput for a file that makes no sense."""
    layers: list[dict[str, Stated]] = []
    final: set[str] = set()
    for path in condarc_files(environ, home, prefix=prefix, system=system, platform=platform):
        text = read(path)
        if text is not None:
            found = {key: Stated(origin=str(path), value=value) for key, value in _parsed(path, text).items()}
            layers.append({key: stated for key, stated in found.items() if key not in final})
            final |= {match["key"] for match in _FINAL.finditer(text)} & found.keys()
    names = ((key, f"CONDA_{key.upper()}") for key in VARIABLES if key not in final)
    layers.append({key: Stated(origin=name, value=environ[name]) for key, name in names if environ.get(name)})
    stated: dict[str, list[Stated]] = {}
    for layer in reversed(layers):
        for key, each in layer.items():
            stated.setdefault(key, []).append(each)
    return stated


def condarc_files(environ: Mapping[str, str], home: Path, *, prefix: Path | None, system: Path,
                  platform: str) -> Iterator[Path]:
    """The files that conda reads where they are there, the lowest place first."""
    wide = (system / "ProgramData" / "conda",) if platform == "win32" else \
        (system / "etc" / "conda", system / "var" / "lib" / "conda")
    root = environ.get("CONDA_ROOT") or _root(environ.get("CONDA_EXE", ""))
    xdg = environ.get("XDG_CONFIG_HOME", "")
    places = [*wide, *([Path(root)] if root else []), *([Path(xdg) / "conda"] if xdg else []),
              home / ".config" / "conda", home / ".conda"]
    for place in places:
        yield from _files(place)
    yield home / ".condarc"
    active = prefix or (Path(environ["CONDA_PREFIX"]) if environ.get("CONDA_PREFIX") else None)
    if active is not None:
        yield from _files(active)
    named = environ.get("CONDARC")
    if named:
        yield home / named[2:] if named.startswith("~/") else Path(named)


def _root(executable: str) -> str:
    """The installation that CONDA_EXE (<root>/bin/conda) belongs to."""
    return str(Path(executable).parent.parent) if executable else ""


def _files(place: Path) -> Iterator[Path]:
    single, plain, folder = (place / name for name in _NAMES)
    yield single
    yield plain
    try:
        yield from sorted(path for path in folder.iterdir() if path.suffix in {".yml", ".yaml"})
    except OSError:
        return


def _parsed(path: Path, text: str) -> dict[str, Any]:
    if len(text) > _LARGEST:
        raise BadInput(str(path), "is too large for a conda configuration")
    from yaml import MarkedYAMLError, SafeLoader, YAMLError, load

    hint = "correct it; `conda config --validate` says more"
    try:
        document = load(text, SafeLoader)
    except MarkedYAMLError as fault:
        line = "" if fault.problem_mark is None else f" in line {fault.problem_mark.line + 1}"
        raise BadInput(str(path), f"is no valid YAML: {fault.problem or 'it cannot be parsed'}{line}", hint) from None
    except (YAMLError, ValueError, RecursionError):     # ValueError: an impossible date, which YAML would make of it
        raise BadInput(str(path), "is no valid YAML", hint) from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise BadInput(str(path), "is no conda configuration: its top level is no mapping", hint)
    return {str(key): value for key, value in document.items()}
