"""The JSON documents that scripts read. Shapes: docs/json.md; `schema_version` grows when one breaks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from stackfix.errors import StackfixError
from stackfix.platforms import PLATFORMS
from stackfix.report.redact import redacted

if TYPE_CHECKING:
    from stackfix.conda.records import CondaTarget
    from stackfix.resolve.records import Cause, Lock, LockedPackage, Target, TargetLock

SCHEMA_VERSION = 1


def render_json(document: Mapping[str, Any]) -> str:
    """The document as one indented JSON text with `schema_version` first and no login in it."""
    return redacted(json.dumps({"schema_version": SCHEMA_VERSION, **document}, indent=2, ensure_ascii=False))


def lock_document(
    lock: Lock, files: Iterable[str], differences: Iterable[Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """`stackfix lock --json`: stack, targets with their packages, files (paths as written), notes."""
    document: dict[str, Any] = {
        "stack": {**asdict(lock.stack), "pythons": list(lock.stack.pythons), "platforms": list(lock.stack.platforms)},
        "targets": _targets(lock),
        "files": list(files),
        "notes": list(lock.notes),
    }
    if differences is not None:
        document["differences"] = list(differences)
    return document


def _targets(lock: Lock) -> list[dict[str, Any]]:
    """One entry a target: the packages of the pip lock, then those of the channels."""
    wheels = {one.target: one for one in lock.targets}
    conda = {one.target: one for one in lock.conda}
    return [_target(target, wheels.get(target), conda.get(target)) for target in sorted({*wheels, *conda})]


def _target(target: Target, wheels: TargetLock | None, conda: CondaTarget | None) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "python": target.python,
        "platform": target.platform,
        **({"variant": target.variant} if target.variant else {}),
        **newest_system(target),
        **({"cuda": wheels.build.cuda} if wheels is not None else {}),
        "packages": [_package(package) for package in wheels.packages] if wheels is not None else [],
    }
    if conda is not None:
        from stackfix.report.conda_json import conda_document, conda_packages

        beside = [_package(package) for package in conda.pip]
        entry["packages"] += [*conda_packages(conda), *(beside if wheels is None else [])]
        entry["conda"] = conda_document(conda, beside)
    return entry


def newest_system(target: Target) -> dict[str, str]:
    """The newest system that wheels may need, by the name that it has on the target's platform."""
    found = {"Linux": {"glibc": target.glibc}, "Darwin": {"macos": target.macos}}
    return found.get(PLATFORMS[target.platform].system, {})


def _package(package: LockedPackage) -> dict[str, Any]:
    chosen = package.files[0]
    entry: dict[str, Any] = {
        "name": package.name,
        "version": package.version,
        "manager": "pip",
        "url": chosen.url,
        "sha256": chosen.sha256,
        "hashes": sorted({file.sha256 for file in package.files if file.sha256}),
        "requested_by": list(package.requested_by),
    }
    if package.direct:
        entry["direct"] = True
    if package.step != 1:
        entry["step"] = package.step
    return entry


def error_document(error: StackfixError, *, message: str | None = None, **where: str | None) -> dict[str, Any]:
    """`{"error": {"code", "message", "next_step"?, "causes", "nearest"}}` for any of our errors.

    `message` stands in place of the error's own; `where` says what it happened to.
    """
    from stackfix.resolve.records import NoConsistentStack

    body: dict[str, Any] = {"code": error.reference, "message": message or error.what(), **where}
    step = error.next_step()
    if step is not None:
        body["next_step"] = step
    found = error if isinstance(error, NoConsistentStack) else None
    body["causes"] = [cause_document(cause) for cause in found.causes] if found else []
    body["nearest"] = [asdict(offer) for offer in found.nearest] if found else []
    return {"error": body}


def cause_document(cause: Cause) -> dict[str, Any]:
    """One link of the chain; `asked` says which option to take away."""
    entry: dict[str, Any] = {"kind": cause.kind, "text": cause.text, "source": cause.source}
    if cause.asked is not None:
        entry["asked"] = asdict(cause.asked)
    return entry
