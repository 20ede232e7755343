"""The conda side of `stackfix lock --json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stackfix.conda.records import CondaRecord, CondaTarget, Snapshot


def conda_document(target: CondaTarget, pip: list[dict[str, Any]]) -> dict[str, Any]:
    """How the channels' side of one target came about; `pip`: what pip installs in it."""
    return {
        "layout": target.layout,
        "channels": [{"name": channel.name, "url": channel.url} for channel in target.channels],
        "priority": target.priority,
        "virtual_packages": [
            {"name": one.name, "version": one.version, "build": one.build, "origin": one.origin}
            for one in target.virtual
        ],
        "specs": [{"spec": spec.text, "origin": spec.origin} for spec in target.specs],
        "departures": [
            {"about": one.about, "pip": one.pip, "conda": one.conda, "reason": one.reason, "source": one.source}
            for one in target.departures
        ],
        "snapshot": _snapshot(target.snapshot),
        "pip": pip,
    }


def _snapshot(snapshot: Snapshot | None) -> dict[str, Any] | None:
    if snapshot is None:
        return None
    return {"date": snapshot.date, "digest": snapshot.digest, "reason": snapshot.reason,
            "holes": list(snapshot.holes)}


def conda_packages(target: CondaTarget) -> list[dict[str, Any]]:
    """The packages of channels, with who asks for each."""
    askers: dict[str, set[str]] = {}
    for spec in target.specs:
        askers.setdefault(_name(spec.text), set()).add(spec.origin)
    for record in target.records:
        for line in record.depends:
            askers.setdefault(_name(line), set()).add(record.name)
    return [_package(record, sorted(askers.get(record.name, set()) - {record.name})) for record in target.records]


def _name(spec: str) -> str:
    return spec.partition(" ")[0].lower()


def _package(record: CondaRecord, askers: list[str]) -> dict[str, Any]:
    return {
        "name": record.name, "version": record.version, "build": record.build, "manager": "conda", "url": record.url,
        "sha256": record.sha256, "md5": record.md5, "channel": record.channel, "subdir": record.subdir,
        "requested_by": askers,
    }
