"""The check of `--allow-builds`."""

from __future__ import annotations

from stackfix.errors import BadInput
from stackfix.request.names import is_name, leading_name, normalise

ALL = ":all:"


def check_allow_builds(text: str, thing: str = "--allow-builds") -> str:
    """The project, normalised, or ":all:". Raises BadInput for what is neither."""
    name = text.strip()
    if name == ALL:
        return ALL
    if not is_name(name):
        named = leading_name(name)
        hint = f"name the project alone: {named}" if named is not None else "name a project, or `:all:`"
        raise BadInput(f"{thing} {text}", "is no project's name", hint)
    return normalise(name)
