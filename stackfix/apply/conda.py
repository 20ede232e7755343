"""Which files of an environment belong to a package of conda, by its record; and what conda has linked for a step."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable, Iterator
from typing import Any

from stackfix.apply.caches import caches_of
from stackfix.apply.distributions import is_file, topmost
from stackfix.apply.errors import Drifted
from stackfix.apply.lock import STORE
from stackfix.apply.moves import remove
from stackfix.apply.nodes import walk
from stackfix.apply.stage_file import write_text
from stackfix.apply.tree import Tree, is_below, join, parts_of, split
from stackfix.errors import BadInput, Unreachable
from stackfix.plan.records import InstallConda

META = "conda-meta"
LARGEST = 32 << 20
SCRIPT = re.compile(r"(?:bin|Scripts)/\.[^/]+-(?:pre|post)-(?:un)?link\.(?:sh|bat)")
OF_THE_USER = ("requested_spec", "requested_specs")     # what somebody asked for, which a repair does not change
NEXT = "the command that conda's own tools take is printed by `stackfix repair --dry-run`"


def conda_paths(tree: Tree, step: InstallConda, ours: frozenset[str]) -> tuple[str, ...]:
    """What goes when the step's records go: whole folders where all in them is theirs, or `ours`.

    A file that another record lists, too, stays. Raises Drifted where the records are others, BadInput for a package
    with scripts that conda would run.
    """
    owned, going = set[str](), [tree.resolve(each) for each in step.records]
    for path, replaced in zip(going, step.replaces, strict=True):
        found = record_at(tree, path)
        if found is None or f"{found.get('name')} {found.get('version')}" != replaced:
            raise Drifted(tree.prefix, ((path, f"is not the record of {replaced}"),))
        files = tuple(files_of(found))
        must_have_no_script(replaced, files)
        owned |= {path, *(each for each in map(tree.resolve, files)
                          if is_file(tree, each) and not is_below(each, STORE))}
    others = [each for each in records_in(tree) if each not in going]
    owned -= {file for each in others for file in files_of(record_at(tree, each) or {})}
    owned |= {cache for path in tuple(owned) for cache in caches_of(tree, path)}
    return tuple(sorted(topmost(tree, "", owned, ours)))


def keep_linked(tree: Tree, place: str, step: InstallConda) -> None:
    """Removes from the stage what is not the package's, such as conda's history. Raises Unreachable, BadInput."""
    brought = [each for each in walk(tree, place) if each.startswith(f"{META}/") and each.endswith(".json")]
    found = record_at(tree, join(place, step.record)) if brought == [step.record] else None
    if found is None or not is_that(found, step):
        raise Unreachable(step.file, f"brought {', '.join(brought) or 'no package'}, not {step.record}")
    if found.get("noarch") == "python":
        raise BadInput(step.project, "is a package of Python modules, which conda itself has to lay out", NEXT)
    files = tuple(files_of(found))
    must_have_no_script(f"{step.project} {step.version}", files)
    listed = {join(place, each) for each in (*files, step.record)}
    for path in [join(place, each) for each in walk(tree, place) if each]:
        target = tree.link_target(path)
        if target is not None:
            must_stay_inside(step, path[len(place) + 1:], target)
        if is_file(tree, path) and path not in listed:
            remove(tree, path)
    keep_what_was_asked(tree, place, step, found)


def keep_what_was_asked(tree: Tree, place: str, step: InstallConda, found: dict[str, Any]) -> None:
    """The new record with what the old one says of its user's wish; our own command is none."""
    old = next((each for each in (record_at(tree, tree.resolve(path)) for path in step.records) if each), {})
    stated = {name: value for name, value in found.items() if name not in OF_THE_USER}
    stated |= {name: old[name] for name in OF_THE_USER if name in old}
    path = join(place, step.record)
    remove(tree, path)
    write_text(tree, path, json.dumps(stated, indent=2, sort_keys=True))


def is_that(found: dict[str, Any], step: InstallConda) -> bool:
    """Whether a record is of the step's package; the hash was checked when its archive was brought."""
    stated = (found.get("name"), found.get("version"), found.get("build"))
    return stated == (step.project, step.version, step.build) and found.get("sha256") in {None, step.sha256}


def must_have_no_script(package: str, files: Iterable[str]) -> None:
    script = next((each for each in files if SCRIPT.fullmatch(each)), None)
    if script is not None:
        raise BadInput(package, f"has {script}, which conda would run: nothing could take that back", NEXT)


def must_stay_inside(step: InstallConda, path: str, target: str) -> None:
    """Raises BadInput for a link that would lead out of the environment."""
    aim = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    if target.startswith("/") or aim.startswith("../") or aim == "..":
        raise BadInput(f"{step.project} {step.version}", f"has {path}, a link to {target}: out of the environment",
                       NEXT)


def records_in(tree: Tree) -> list[str]:
    """What conda has noted of packages, relative to the prefix."""
    return [join(META, name) for name in tree.names(META) if name.endswith(".json")] if tree.is_folder(META) else []


def record_at(tree: Tree, path: str) -> dict[str, Any] | None:
    """A record of conda's; None where there is none that can be read."""
    status = tree.status(path)
    if status is None or status.st_size > LARGEST:
        return None
    try:
        found = json.loads(tree.read(path))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def files_of(record: dict[str, Any]) -> Iterator[str]:
    """Paths of its files, relative to the prefix; those that lead out are left out."""
    files = record.get("files")
    for each in files if isinstance(files, list) else ():
        if isinstance(each, str) and each:
            path = posixpath.normpath(each)
            try:
                if parts_of(path):
                    yield path
            except BadInput:
                continue


def check_conda(step: InstallConda, tree: Tree) -> None:
    """Raises BadInput, or LeavesPrefix, for a step that would reach out of conda's own folder."""
    for path in (*step.records, step.record):
        if split(path)[0] != META or not tree.is_folder(META) or tree.resolve(path) != path:
            raise BadInput(path, f"is not in the {META} folder of {tree.prefix}")
    words = (step.project, step.version, step.build, step.url, step.sha256)
    if any(not word or any(mark.isspace() for mark in word) for word in words):     # each is a part of one word
        raise BadInput(step.project, "is not a package: a part of its name is empty, or has a blank")
