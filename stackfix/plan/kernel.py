"""Variables in the kernel.json of a Jupyter kernel, which starts its Python without any activation."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from stackfix.errors import BadInput
from stackfix.plan.records import WriteFile
from stackfix.plan.relink_paths import check_inside, check_text

LONE = re.compile("[\ud800-\udfff]")
FIRST_INDENT = re.compile(r"^[ \t]+", re.MULTILINE)


def kernel_steps(path: str, text: str, variables: Mapping[str, str | None], mode: int = 0o644) -> tuple[WriteFile, ...]:
    """The file with these variables in its env block, all else as it was; nothing where they are there already.

    Jupyter cannot unset a variable: None is written as an empty one, which the loader takes for none. Raises BadInput
    where the file is no kernel.json, or a value holds what Jupyter would put something else for.
    path: relative to the prefix
    """
    check_inside(path)
    known, before = parse_kernel(path, text)
    for name, value in variables.items():
        check_value(name, value or "")
    env = {**before, **{name: value or "" for name, value in variables.items()}}
    if env == before:
        return ()
    return (WriteFile(path=path, text=written({**known, "env": env}, text), mode=mode),)


def parse_kernel(path: str, text: str) -> tuple[dict[str, object], dict[str, object]]:
    """The document, and its env block. Raises BadInput."""
    hint = "`jupyter kernelspec list` names the kernels; `python -m ipykernel install --prefix` writes one anew"
    try:
        known = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(path, f"is no kernel.json: {error}", hint) from None
    if not isinstance(known, dict) or not isinstance(known.get("argv"), list):
        raise BadInput(path, "is no kernel.json: it names no command (argv)", hint)
    env = known.get("env") or {}
    if not isinstance(env, dict):
        raise BadInput(path, "is no kernel.json: its env is no object", hint)
    return known, env


def check_value(name: str, value: str) -> None:
    """Raises BadInput. Jupyter fills $NAME and ${NAME} in from its own variables, in some releases."""
    check_text(value)
    if "$" in value:
        raise BadInput(value, f"holds a $, for which Jupyter would put something else into {name}", "rename the folder")


def written(document: Mapping[str, object], old: str) -> str:
    """JSON text, indented as the old one was."""
    found = FIRST_INDENT.search(old) if "\n" in old.strip() else None
    indent = found[0] if found else None
    text = json.dumps(document, indent=indent, ensure_ascii=old.isascii())
    if LONE.search(text):       # half a character, which only an escape can write
        text = json.dumps(document, indent=indent)
    return text + old[len(old.rstrip()):]
