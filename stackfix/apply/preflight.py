"""What is asked of all steps before the first one: places, rights, room, and that the tree is the plan's."""

from __future__ import annotations

import os
import posixpath

from stackfix.apply.conda import META, check_conda, conda_paths
from stackfix.apply.distributions import paths_to_set_aside
from stackfix.apply.errors import Drifted, LeavesPrefix, NoSpace
from stackfix.apply.lock import STORE
from stackfix.apply.managed import must_be_movable, must_be_writable
from stackfix.apply.nodes import difference, node_at
from stackfix.apply.tree import Tree, is_below, parts_of, split
from stackfix.errors import BadInput
from stackfix.plan.records import InstallConda, InstallWheel, MakeLink, Plan, Step, WriteFile

ROOM = 64 << 10                 # bytes for the journal and the folders
NAMES = 32                      # files and folders for the same
LARGEST_MODE = 0o777            # no set-user-ID files


def steps_of(plan: Plan) -> tuple[Step, ...]:
    """All steps, in order."""
    return tuple(step for action in plan.actions for step in action.steps)


def check_plan(plan: Plan, tree: Tree) -> None:
    """Raises BadInput, or LeavesPrefix, for a plan of another environment, or one that would reach out of this."""
    if os.path.realpath(plan.prefix) != tree.prefix:
        raise BadInput(plan.prefix, f"is what the plan was made for, not {tree.prefix}", "make a plan for this one")
    for step in steps_of(plan):
        if isinstance(step, InstallWheel):
            check_wheel(step, tree)
            continue
        if isinstance(step, InstallConda):
            check_conda(step, tree)
            continue
        split(step.path)
        if is_below(tree.resolve(step.path), STORE):
            raise BadInput(step.path, "is where transactions are kept: no step may change it")
        if isinstance(step, MakeLink):
            check_link(step, tree)
        elif isinstance(step, WriteFile) and step.mode & ~LARGEST_MODE:
            raise BadInput(step.path, f"would get mode {step.mode:o}")


def check_link(step: MakeLink, tree: Tree) -> None:
    """Raises LeavesPrefix where the link would lead out, BadInput where it is no link."""
    if not step.target or "\0" in step.target:
        raise BadInput(step.path, "would be a link to nothing")
    if step.target.startswith("/"):
        raise LeavesPrefix(step.path, f"would be a link to {step.target}, which is not relative")
    parent = split(tree.resolve(step.path))[0]
    aim = posixpath.normpath(posixpath.join(parent, step.target))
    tree.resolve("" if aim == "." else aim, last=True)


def check_wheel(step: InstallWheel, tree: Tree) -> None:
    if not parts_of(step.site) or not tree.is_folder(tree.resolve(step.site, last=True)):
        raise BadInput(step.site, f"is not a folder of {tree.prefix}, and {step.project} would go there")
    words = (step.project, step.version, step.source, step.sha256)
    if any(not word or any(mark.isspace() for mark in word) for word in words):     # each is a word of a requirement
        raise BadInput(step.project, "is not a release: a word of it is empty, or has a blank")


def check_unchanged(plan: Plan, tree: Tree) -> None:
    """Raises Drifted where a path is not as the plan says that it is before."""
    found = dict[str, str]()
    seen = set[str]()
    for action in plan.actions:
        for change in action.changes if action.steps else ():
            if change.path in seen:         # what the earlier action leaves, the later one starts with
                continue
            seen.add(change.path)
            how = difference(change.before, node_at(tree, tree.resolve(change.path)))
            if how is not None:
                found[change.path] = how
    if found:
        raise Drifted(tree.prefix, tuple(found.items()))


def check_made(plan: Plan, tree: Tree) -> tuple[tuple[str, str], ...]:
    """What is not as the plan says that it is after: (path, how)."""
    after = {change.path: change.after for action in plan.actions if action.steps for change in action.changes}
    found = ((path, difference(node, node_at(tree, tree.resolve(path)))) for path, node in after.items())
    return tuple((path, how) for path, how in found if how is not None)


def check_access(plan: Plan, tree: Tree, ours: frozenset[str]) -> tuple[str, ...]:
    """The paths that will be moved aside. Raises CannotWrite, NotOurs or Drifted where a step cannot be made."""
    away: list[str] = []
    for step in steps_of(plan):
        if isinstance(step, InstallWheel):
            site = tree.resolve(step.site, last=True)
            must_be_writable(tree, site)
            away += paths_to_set_aside(tree, step, site, ours)
        elif isinstance(step, InstallConda):
            must_be_writable(tree, META)
            away += conda_paths(tree, step, ours)
        elif not isinstance(step, MakeLink | WriteFile) or tree.exists(tree.resolve(step.path)):
            away.append(tree.resolve(step.path))
        else:
            must_be_writable(tree, folder_above(tree, tree.resolve(step.path)))
    for path in away:
        if tree.exists(path):
            must_be_writable(tree, split(path)[0])
        must_be_movable(tree, path)
    return tuple(away)


def folder_above(tree: Tree, path: str) -> str:
    """The folder that is there and that the path would be made in. Raises Drifted where something else is there."""
    parent = split(path)[0]
    while parent and not tree.exists(parent):
        parent = split(parent)[0]
    if not tree.is_folder(parent):
        raise Drifted(tree.prefix, ((parent, f"is not a folder, and {path} is to be made there"),))
    return parent


def check_room(plan: Plan, tree: Tree) -> None:
    """Raises NoSpace. What a wheel needs is known once it is unpacked, which is before anything changes."""
    texts = [step.text for step in steps_of(plan) if isinstance(step, WriteFile)]
    found = os.fstatvfs(tree.descriptor)
    block = found.f_frsize or 4096
    need = ROOM + sum(-(-len(text.encode("utf-8", "surrogateescape")) // block) * block for text in texts)
    free = (found.f_bfree if os.geteuid() == 0 else found.f_bavail) * block
    if free < need:
        raise NoSpace(tree.prefix, f"has {free} bytes free, and {need} are needed", "nothing was changed; make room")
    names = NAMES + 4 * len(steps_of(plan))
    if found.f_files and (found.f_ffree if os.geteuid() == 0 else found.f_favail) < names:
        raise NoSpace(tree.prefix, f"has fewer than {names} files free", "nothing was changed; make room")
