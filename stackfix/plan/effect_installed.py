"""The preload hook that an earlier repair has put into an environment, read and not run."""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Iterator, Mapping
from typing import Protocol

from stackfix.inspect.environment_records import Environment
from stackfix.plan.effect_records import Hooked
from stackfix.plan.hook import is_hook

TABLE = "LIBRARIES"
LOADER, STARTERS = "_loader.py", (".pth", ".start")


class Texts(Protocol):
    """Reads files; paths are absolute."""

    def names(self, folder: str) -> tuple[str, ...]:
        """Names in a folder."""
        ...

    def text(self, path: str) -> str | None:
        """The text of a file; None where there is none."""
        ...


def installed_hooks(environment: Environment, texts: Texts) -> tuple[Hooked, ...]:
    """What the hooks in the site folders of the prefix and of its base load, and before which packages."""
    sites = [each.path for each in environment.sites if each.kind == "base" or (
        each.kind == "environment" and each.path.startswith(f"{environment.prefix}/"))]
    return tuple(sorted({each for site in sites for each in hooks_in(site, texts)}))


def hooks_in(site: str, texts: Texts) -> Iterator[Hooked]:
    """Those of one site folder, where the file is there that makes Python start them."""
    names = set(texts.names(site))
    for name in sorted(names):
        stem = name.removesuffix(LOADER)
        if name != stem and is_hook(name) and f"{stem}.py" in names and any(
                f"{stem}{suffix}" in names for suffix in STARTERS):
            for module, paths in table_of(texts.text(f"{site}/{name}") or "").items():
                yield from (Hooked(module=module, library=posixpath.join(site, path)) for path in paths)


def table_of(text: str) -> Mapping[str, tuple[str, ...]]:
    """The table of a hook's module; empty where somebody has changed it beyond what can be read."""
    try:
        assigned = [node.value for node in ast.parse(text).body if isinstance(node, ast.Assign)
                    and [getattr(target, "id", None) for target in node.targets] == [TABLE]]
        found = ast.literal_eval(assigned[0]) if assigned else {}
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {module: tuple(path for path in paths if isinstance(path, str)) for module, paths in found.items()
            if isinstance(module, str) and isinstance(paths, (tuple, list))}
