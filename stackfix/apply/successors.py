"""Releases that somebody has installed in the place of those that a transaction had brought."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stackfix.apply.conda import record_at, records_in
from stackfix.apply.distributions import (
    RECORD,
    Release,
    is_of_conda,
    normalised,
    owned_by,
    releases_in,
    topmost,
)
from stackfix.apply.managed import is_own
from stackfix.apply.nodes import node_at
from stackfix.apply.preflight import steps_of
from stackfix.apply.records import Successor
from stackfix.apply.store import Recorded
from stackfix.apply.tree import Tree, is_below, join
from stackfix.plan.records import InstallConda, InstallWheel, Node

OF_CONDA = "conda has it on its own record"
NO_RECORD = "it has no RECORD, so nobody can tell which files are its"


def successors(tree: Tree, found: Recorded) -> tuple[Successor, ...]:
    """Those of a transaction that was made to its end. What was there before it is none. Raises OSError."""
    if not found.committed or found.begin is None:
        return ()
    later = list[Successor]()
    for step in steps_of(found.begin.plan):
        if isinstance(step, InstallWheel):
            later += of_wheel(tree, found, step)
        elif isinstance(step, InstallConda):
            later += of_conda(tree, found, step)
    return tuple(later)


def of_wheel(tree: Tree, found: Recorded, step: InstallWheel) -> Iterator[Successor]:
    """Other releases of the project, and the same one where its RECORD is another."""
    site = tree.resolve(step.site, last=True)
    present = releases_in(tree, site)
    names = {step.project, *(normalised(each.partition(" ")[0]) for each in step.replaces)}
    for each in present:
        if each.project in names and not was_before(found, each.info) and not is_ours(tree, found, each):
            stuck = OF_CONDA if is_of_conda(tree, each) else None if tree.exists(join(each.info, RECORD)) else NO_RECORD
            yield Successor(project=each.project, version=each.version, ours=step.version, replaced=step.replaces,
                            info=each.info, stuck=stuck, paths=() if stuck else paths_of(tree, site, present, each))


def of_conda(tree: Tree, found: Recorded, step: InstallConda) -> Iterator[Successor]:
    """Other packages of the name. conda's own commands alone can take one out and keep its record true."""
    for path in records_in(tree):
        stated = record_at(tree, path) or {}
        if stated.get("name") == step.project and path != step.record and not was_before(found, path):
            yield Successor(project=step.project, version=str(stated.get("version")), ours=step.version,
                            replaced=step.replaces, info=path, stuck=OF_CONDA)


def was_before(found: Recorded, path: str) -> bool:
    """Whether the transaction had set this path aside."""
    return any(is_below(path, each.path) for each in found.moves if each.kind == "aside")


def is_ours(tree: Tree, found: Recorded, release: Release) -> bool:
    """Whether this is the release that was brought, as it was brought."""
    record = join(release.info, RECORD)
    brought = node_brought(found, record)
    # without RECORD it is half out: an undo was stopped there
    return brought is not None and (not tree.exists(record) or node_at(tree, record).sha256 == brought.sha256)


def node_brought(found: Recorded, path: str) -> Node | None:
    return next((entry.node for each in found.moves for entry in each.entries
                 if join(each.path, entry.path) == path), None)


def paths_of(tree: Tree, site: str, present: Iterable[Release], release: Release) -> tuple[str, ...]:
    """What a release has, whole folders where all in them is its; never what is the environment's own."""
    owned = {path for path in owned_by(tree, present, (release,)) if not is_own(path, site)}
    found = sorted(topmost(tree, site, owned, frozenset()))
    return (*(path for path in found if not is_below(path, release.info)),
            *(path for path in found if is_below(path, release.info)))
