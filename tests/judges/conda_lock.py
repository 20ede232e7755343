"""Judge: conda-lock 4. Its models read conda-lock.yml, its rendering is our explicit file, its hash is our hash.

It does not notice a wrong md5 or a dependency that is missing: of those it is no judge.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

MARK = "@EXPLICIT"


def part(name: str) -> Any:
    """A module of conda-lock. What it takes along from conda warns while it loads."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module(f"conda_lock.{name}")


def complaints(
    lock: Path, scratch: Path, *, explicit: dict[str, Path] | None = None, environments: dict[str, Path] | None = None,
) -> list[str]:
    """What conda-lock finds wrong. `explicit`, `environments`: our other files of the same lock, by platform."""
    return [*model_complaints(lock), *explicit_complaints(lock, explicit or {}),
            *hash_complaints(lock, scratch, environments or {})]


def parsed(lock: Path) -> Any:
    """The file as conda-lock's own `Lockfile`. Raises what its models raise."""
    return part("lockfile").parse_conda_lock_file(lock)


def model_complaints(lock: Path) -> Iterator[str]:
    """Where its models lose something, or where it would write another order of packages and dependencies."""
    document = yaml.load(lock.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    try:
        model = parsed(lock)
    except (ValueError, TypeError, KeyError) as error:
        yield f"conda-lock cannot read it: {error}"
        return
    model.alphasort_inplace()
    written = model.to_v1().dict_for_output()
    if written["version"] != document["version"] or written["metadata"] != document["metadata"]:
        yield f"its metadata would be {written['metadata']}"
    if len(written["package"]) != len(document["package"]):
        yield f"it knows {len(written['package'])} of {len(document['package'])} packages"
    for theirs, ours in zip(written["package"], document["package"], strict=False):
        if theirs != ours or list(theirs["dependencies"]) != list(ours["dependencies"]):
            yield f"{ours.get('name')}: it would write {theirs} for {ours}"


def explicit_body(lock: Path, platform: str) -> list[str]:
    """The lines from @EXPLICIT on that `conda-lock render --kind explicit` makes for the platform."""
    lines: list[str] = part("conda_lock").render_lockfile_for_platform(
        lockfile=parsed(lock), include_dev_dependencies=True, extras=None, kind="explicit", platform=platform,
        suppress_warning_for_pip_and_explicit=True)
    return lines[lines.index(MARK):]


def explicit_complaints(lock: Path, explicit: dict[str, Path]) -> Iterator[str]:
    """Lines in which its explicit rendering differs from our files."""
    for platform, path in explicit.items():
        ours = path.read_text(encoding="utf-8").splitlines()
        body, theirs = ours[ours.index(MARK):], explicit_body(lock, platform)
        if body != theirs:
            first = next((pair for pair in zip(body, theirs, strict=False) if pair[0] != pair[1]), ("", ""))
            yield f"{path.name}: {len(body)} lines, it renders {len(theirs)}; first {first}"


def content_hash(environment: Path, platform: str, scratch: Path) -> str:
    """The content hash that conda-lock computes for an environment.yml, with its default virtual packages."""
    names = scratch / "no-other-names.json"     # it would fetch a table of names; ours are those of conda already
    names.write_text("{}", encoding="utf-8")
    spec = part("conda_lock").make_lock_spec(
        src_files=[environment], mapping_url=str(names), channel_overrides=None, platform_overrides=[platform],
        filtered_categories=None)
    virtual = part("virtual_package").default_virtual_package_repodata()
    found: str = part("content_hash").compute_content_hashes(spec, virtual)[platform]
    return found


def hash_complaints(lock: Path, scratch: Path, environments: dict[str, Path]) -> Iterator[str]:
    """Content hashes that are not those of our environment files."""
    document = yaml.load(lock.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    for platform, path in environments.items():
        stated, theirs = document["metadata"]["content_hash"].get(platform), content_hash(path, platform, scratch)
        if stated != theirs:
            yield f"content hash of {platform}: {stated}, it computes {theirs}"
