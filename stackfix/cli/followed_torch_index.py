"""The torch index among a user's indexes: it mirrors parts of other projects, so it is asked for its own alone."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from stackfix.errors import BadInput
from stackfix.platforms import CPU
from stackfix.quick import replace
from stackfix.sources.routes import TORCH_PATH, cuda_of_path

if TYPE_CHECKING:
    from pathlib import Path

    from stackfix.sources.records import IndexSettings

ADDRESS = re.compile(rf"(?P<base>.+?)(?P<nightly>/nightly)?(?:/(?P<path>{TORCH_PATH}))?/*")
LIKELY = re.compile(rf"/(?:whl(?:/[^/]+)?|{TORCH_PATH})/*\Z")


def without_torch_index(
    settings: IndexSettings, *, torch_index: str | None, directory: Path | None,
) -> IndexSettings:
    """The settings without the torch index, and a note on it. Raises BadInput where it is the only index.

    An index that comes first is the only one asked for what it has, and the torch index has old releases and wheels of
    few Pythons of what its own projects require.
    """
    if not any(LIKELY.search(address) for address in settings.indexes):
        return settings
    from stackfix.matrix.load import load_matrix
    from stackfix.sources.address import shown, without_credentials

    official = load_matrix(directory).sources.torch_index
    bases = {without_credentials(base).rstrip("/") for base in (official, torch_index) if base is not None}
    found = [(place, address, match["path"]) for place, address in enumerate(settings.indexes)
             if (match := ADDRESS.fullmatch(without_credentials(address))) and match["base"].rstrip("/") in bases]
    if not found:
        return settings
    left = [place for place in range(len(settings.indexes)) if place not in {place for place, _, _ in found}]
    if not left:
        place, address, path = found[0]
        raise BadInput(f"{settings.origin[place]} {shown(address)}", "is the torch index, which has torch and what is "
                       "built with it alone: it is asked for these by itself", f"leave it out{asks_for(path)}")
    notes = tuple(f"{shown(address)} ({settings.origin[place]}) is the torch index: it was asked for torch and what is "
                  f"built with it alone{asks_for(path)}" for place, address, path in found)
    return replace(settings, indexes=taken(settings.indexes, left), origin=taken(settings.origin, left),
                   notes=(*settings.notes, *notes))


def taken(values: tuple[str, ...], places: Iterable[int]) -> tuple[str, ...]:
    """The values at these places."""
    return tuple(values[place] for place in places)


def asks_for(path: str | None) -> str:
    """`; --cuda 12.6 asks for its builds` of cu126; nothing for other devices, which no stack is made for."""
    cuda = cuda_of_path(path or "")
    return f"; --cuda {cuda} asks for its builds" if cuda == CPU or cuda[:1].isdigit() else ""
