"""Pins of conda and of pip as what `stackfix diff` compares."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stackfix.write.records import CondaPin, Entry, Held, PipPin

KeyOf = Callable[["CondaPin"], str]
OF_PYTHON = re.compile(r"py\d")


def key_book() -> KeyOf:
    """What a package of a channel is called on both sides, by matrices/conda_names.toml."""
    from packaging.utils import canonicalize_name

    from stackfix.matrix.conda_names import load_conda_names
    from stackfix.write.difference import CONDA, key_of

    names = load_conda_names(None)
    rows = {row.package: row.projects for row in (*names.stack, *names.other, *names.same)}

    def key(pin: CondaPin) -> str:
        own = canonicalize_name(pin.name)
        projects = rows.get(pin.name)
        if projects:
            keys = dict.fromkeys(key_of(project) for project in projects)
            return own if own in keys else next(iter(keys))
        is_python = pin.noarch == "python" or OF_PYTHON.match(pin.build) is not None or any(
            line.split(" ")[0] in {"python", "python_abi"} for line in pin.depends)
        return own if pin.name == "python" or (is_python and pin.name not in names.none) else f"{CONDA}{pin.name}"

    return key


def conda_held(pins: Iterable[CondaPin], key: KeyOf) -> Iterator[Held]:
    """The packages of channels."""
    from stackfix.write.clean import without_credentials
    from stackfix.write.records import Held

    for pin in pins:
        hashes = [*([f"sha256:{pin.sha256}"] if pin.sha256 else []), *([f"md5:{pin.md5}"] if pin.md5 else [])]
        source = without_credentials(pin.channel).rstrip("/") if pin.channel and "://" in pin.channel else None
        if source is not None and pin.subdir:
            source = source.removesuffix(f"/{pin.subdir}")      # conda's own records have the folder of the platform
        yield Held(name=pin.name, key=key(pin), manager="conda", version=pin.version, build=pin.build, source=source,
                   hashes=tuple(sorted(hashes)))


def pip_held(pins: Iterable[PipPin | Entry]) -> Iterator[Held]:
    """The packages of pip."""
    from stackfix.sync.changes import version_in
    from stackfix.write.clean import without_credentials
    from stackfix.write.difference import key_of
    from stackfix.write.records import Held

    for pin in pins:
        digests = (pin.sha256,) if isinstance(pin.sha256, str) else pin.sha256 or ()
        version = pin.version or (version_in(pin.url) if pin.url else None)
        yield Held(name=pin.name, key=key_of(pin.name), manager="pip", version=version,
                   source=without_credentials(pin.url) if pin.url else None,
                   hashes=tuple(sorted(f"sha256:{digest}" for digest in digests)))
