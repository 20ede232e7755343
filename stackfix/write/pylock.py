"""The locks of one or several targets as `pylock.toml` (PEP 751)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tomli_w
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from stackfix.resolve.records import Target, TargetLock
from stackfix.sources.records import IndexFile
from stackfix.write.clean import locked_sha256, locked_url
from stackfix.write.markers import environment_marker, minor_of, order_of, point_of
from stackfix.write.names import tag_of
from stackfix.write.shared import Shared, by_name, dependencies, shared_packages


def render_pylock(lock: TargetLock, *, second_step: str | None = None) -> str:
    """The file of one target."""
    return render_pylocks((lock,), second_steps={lock.target: second_step} if second_step else {})


def render_pylocks(
    locks: Sequence[TargetLock], *, second_steps: Mapping[Target, str], variant: str = "",
) -> str:
    """The file's text. No two of the targets may be the same to a marker.

    Left out: `index` (every file has its URL, no index is needed), `upload-time` (a lock holds no time) and the
    packages of the second step (an installer would build them in isolation); `[tool.stackfix]` names their file.
    """
    targets = sorted((lock.target for lock in locks), key=order_of)
    packages = shared_packages(locks)
    every = by_name(packages)
    document: dict[str, Any] = {
        "lock-version": "1.0",
        "environments": [environment_marker(target) for target in targets],
        "requires-python": f">={min((target.python for target in targets), key=minor_of)}",
        "created-by": "stackfix",
        "packages": [package_table(package, every) for package in packages],
    }
    own = dict(tool_keys(targets, second_steps, variant))
    if own:
        document["tool"] = {"stackfix": own}
    return tomli_w.dumps(document)


def tool_keys(targets: Sequence[Target], second_steps: Mapping[Target, str], variant: str) -> Iterator[tuple[str, Any]]:
    """What only `stackfix` reads: the file that is installed afterwards, and which build no marker can tell."""
    if variant:
        yield "variant", variant
    if len(targets) == 1 and second_steps:
        yield "second-step", second_steps[targets[0]]
    elif second_steps:
        yield "second-steps", {tag_of(target): second_steps[target] for target in targets if target in second_steps}


def pylock_groups(locks: Sequence[TargetLock]) -> tuple[tuple[str, tuple[TargetLock, ...]], ...]:
    """(variant, targets) of each file: one for all, or one a variant where no marker tells two targets apart."""
    if len({point_of(lock.target) for lock in locks}) == len(locks):
        return (("", tuple(locks)),)
    variants = sorted({lock.target.variant for lock in locks})
    return tuple((variant, tuple(lock for lock in locks if lock.target.variant == variant)) for variant in variants)


def package_table(one: Shared, every: Mapping[str, tuple[Shared, ...]]) -> dict[str, Any]:
    """One `[[packages]]`. `every`: all of the file, for a dependency must be there."""
    package = one.package
    table: dict[str, Any] = {"name": package.name}
    if not package.direct:
        # A release asset's file name has a local version that its metadata lacks; installers refuse either with it
        table["version"] = package.version
    if one.marker is not None:
        table["marker"] = one.marker
    if package.requires_python and is_specifier(package.requires_python):
        table["requires-python"] = package.requires_python
    needed = list(dependencies(one, every))
    if needed:
        table["dependencies"] = needed
    if package.direct:
        table["archive"] = without_name(file_table(package.files[0]))
        return table
    wheels = sorted((file for file in one.files if file.is_wheel), key=lambda file: file.filename)
    sdists = sorted((file for file in one.files if not file.is_wheel), key=lambda file: file.filename)
    if sdists:
        table["sdist"] = file_table(sdists[0])
    if wheels:
        table["wheels"] = [file_table(file) for file in wheels]
    return table


def file_table(file: IndexFile) -> dict[str, Any]:
    """`name`, `url`, `size` where the index states it, `hashes`."""
    table: dict[str, Any] = {"name": file.filename, "url": locked_url(file.url)}
    if file.size is not None:
        table["size"] = file.size
    table["hashes"] = {"sha256": locked_sha256(file)}
    return table


def without_name(table: dict[str, Any]) -> dict[str, Any]:
    """The table of an archive, which has no `name` key."""
    return {key: value for key, value in table.items() if key != "name"}


def is_specifier(text: str) -> bool:
    """Whether `text` is a PEP 440 specifier set; what an index says of old files is not always one."""
    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        return False
    return True
