"""A target's lock as `pylock.toml` (PEP 751)."""

from __future__ import annotations

from typing import Any

import tomli_w
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from stackfix.errors import BadInput
from stackfix.resolve.records import LockedPackage, Target, TargetLock
from stackfix.sources.records import IndexFile
from stackfix.write.clean import locked_sha256, locked_url

MACHINES = {"linux-64": "x86_64", "linux-aarch64": "aarch64"}


def render_pylock(lock: TargetLock, *, second_step: str | None = None) -> str:
    """The file's text.

    Left out: `index` (every file has its URL, no index is needed), `upload-time` (a lock holds no time) and the
    packages of the second step (an installer would build them in isolation); `[tool.stackfix]` names their file.
    """
    packages = sorted((package for package in lock.packages if package.step == 1), key=lambda package: package.name)
    names = frozenset(package.name for package in packages)
    document: dict[str, Any] = {
        "lock-version": "1.0",
        "environments": [environment_marker(lock.target)],
        "requires-python": f">={lock.target.python}",
        "created-by": "stackfix",
        "packages": [package_table(package, names) for package in packages],
    }
    if second_step:
        document["tool"] = {"stackfix": {"second-step": second_step}}
    return tomli_w.dumps(document)


def environment_marker(target: Target) -> str:
    """The marker of the environments this lock is for. A marker has no word for glibc: the wheel tags say it."""
    machine = MACHINES.get(target.platform)
    if machine is None:
        raise BadInput(f"--platform {target.platform}", "pylock.toml has no marker for it",
                       f"known: {', '.join(MACHINES)}")
    return (f"python_version == '{target.python}' and implementation_name == 'cpython'"
            f" and sys_platform == 'linux' and platform_machine == '{machine}'")


def package_table(package: LockedPackage, names: frozenset[str]) -> dict[str, Any]:
    """One `[[packages]]`. `names`: what else is in the file, for a dependency must be."""
    table: dict[str, Any] = {"name": package.name}
    if not package.direct:
        # A release asset's file name has a local version that its metadata lacks; installers refuse either with it
        table["version"] = package.version
    if package.requires_python and is_specifier(package.requires_python):
        table["requires-python"] = package.requires_python
    dependencies = sorted((set(package.requires) & names) - {package.name})
    if dependencies:
        table["dependencies"] = [{"name": name} for name in dependencies]
    if package.direct:
        table["archive"] = without_name(file_table(package.files[0]))
        return table
    wheels = sorted((file for file in package.files if file.is_wheel), key=lambda file: file.filename)
    sdists = sorted((file for file in package.files if not file.is_wheel), key=lambda file: file.filename)
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
