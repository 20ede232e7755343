"""The JSON documents of `stackfix repair` and `stackfix undo`. Their shape: docs/commands.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from stackfix.apply.records import Applied, Forgotten, Pending, Remains, Transaction, Undone, Unreadable
from stackfix.plan.records import Action, Change, Left, Node, Plan
from stackfix.report.check_json import finding_document
from stackfix.report.probe_json import step_document
from stackfix.report.repair_records import Refusal, Verified
from stackfix.verify.records import Probe


def plan_document(plan: Plan) -> dict[str, Any]:
    """All actions, what is left and why, and the variables as activation leaves them."""
    return {
        "actions": [action_document(each) for each in plan.actions],
        "left": [left_document(each) for each in plan.left],
        "variables": dict(plan.variables),
    }


def refused_document(refused: Refusal) -> dict[str, Any]:
    """Why nothing may be changed."""
    return {"code": refused.code, "message": refused.message, "hint": refused.hint, "command": refused.command}


def left_document(left: Left) -> dict[str, Any]:
    """A finding that stays. With `unreached` there may be a cure; `by_auto`: kinds of actions of another method.

    by_install: projects of which an installation may cure it, where the method admits none
    by_scripts: activation as an earlier repair has left it cures it
    """
    return {
        "code": left.code, "summary": left.summary, "reason": left.reason,
        "unreached": [{"message": each.what, "hint": each.hint} for each in left.unreached],
        "by_auto": list(left.by_auto), "by_scripts": left.by_scripts,
        "by_install": list(left.by_install),
    }


def action_document(action: Action) -> dict[str, Any]:
    return {
        "id": action.id, "kind": action.kind, "summary": action.summary, "cures": list(action.cures),
        "changes": [change_document(each) for each in action.changes], "command": action.command,
        "notes": list(action.notes),
    }


def change_document(change: Change) -> dict[str, Any]:
    """One path; of an installation with the number of files that come, or else go, and their bytes."""
    document = {"path": change.path, "before": node_document(change.before), "after": node_document(change.after)}
    return document if change.files is None else {**document, "files": change.files, "bytes": change.size}


def node_document(node: Node) -> dict[str, Any] | None:
    """What is at a path; null where there is nothing."""
    if node.kind == "absent":
        return None
    mode = None if node.mode is None else f"{node.mode:04o}"
    return {"kind": node.kind, "sha256": node.sha256, "mode": mode, "target": node.target}


def applied_document(applied: Applied, *, taken_back: bool) -> dict[str, Any]:
    """What was changed; `taken_back`: and is as it was again."""
    return {
        "repair": applied.number, "folder": applied.folder, "actions": list(applied.actions),
        "made": list(applied.made), "kept": [{"path": each.path, "copy": each.copy} for each in applied.kept],
        "processes": [{"pid": each.pid, "command": each.command, "files": list(each.files)}
                      for each in applied.processes],
        "taken_back": taken_back,
    }


def verified_document(verified: Verified) -> dict[str, Any]:
    """The three proofs; `findings` are what is there now."""
    return {
        "static": "findings" if verified.findings else "clean",
        "load": verified.load.verdict if verified.load else "cannot-tell",
        "kernel": verified.kernel.verdict if verified.kernel else "cannot-tell",
        "reason": verified.reason,
        "findings": [finding_document(each) for each in verified.findings],
        "surprises": [finding_document(each) for each in verified.surprises],
        "steps": [*steps_of(verified.load), *steps_of(verified.kernel)], "libraries": list(verified.libraries),
    }


def steps_of(probe: Probe | None) -> list[dict[str, Any]]:
    return [step_document(each) for each in probe.steps] if probe else []


def undone_document(prefix: str, undone: Sequence[Undone]) -> dict[str, Any]:
    """What was taken back, the last repair first."""
    return {"prefix": prefix, "undone": [{
        "repair": each.number, "actions": list(each.actions), "removed": list(each.removed),
        "restored": list(each.restored), "kept": [{"path": one.path, "copy": one.copy} for one in each.kept],
        "gone": list(each.gone), "left": list(each.left), "remains": remains_document(each.remains),
    } for each in undone]}


def forgotten_document(prefix: str, forgotten: Sequence[Forgotten]) -> dict[str, Any]:
    """The repairs whose records were ended, the last one first; `dropped`: paths whose copies are gone."""
    return {"prefix": prefix, "forgotten": [{
        "repair": each.number, "actions": list(each.actions), "dropped": list(each.dropped),
        "remains": remains_document(each.remains)} for each in forgotten]}


def remains_document(found: Sequence[Remains]) -> list[dict[str, Any]]:
    return [{"path": each.path, "reason": each.reason} for each in found]


def transactions_document(prefix: str, found: Sequence[Transaction], unfinished: Pending | None,
                          lost: Sequence[Unreadable], unused: Mapping[int, Sequence[str]],
                          over: Sequence[str] = ()) -> dict[str, Any]:
    """What can be taken back, the last repair first; `unfinished`: one that was stopped in the middle.

    `gone` of a repair: what it was made for, where nothing of that is there any more.
    """
    return {"prefix": prefix, "repairs": [{
        "repair": each.number, "folder": each.folder, "started": each.started, "actions": list(each.actions),
        "made": list(each.made), "kept": [{"path": one.path, "copy": one.copy} for one in each.kept],
        "gone": list(unused.get(each.number, ())),
    } for each in found], "unfinished": asdict(unfinished) if unfinished else None, "unreadable": [
        {"repair": each.number, "folder": each.folder, "reason": each.reason, "hint": each.hint} for each in lost],
        "remains": list(over)}
