"""The JSON document of `stackfix check`. Its shape: docs/commands.md."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from stackfix.diagnose.finding_records import Diagnosis, Finding
from stackfix.inspect.environment_records import CondaPrefix, Environment, Python, Venv
from stackfix.inspect.machine_records import Driver, Machine, SystemLibrary

MOST_NOTES = 100
REASON = "check reads files and simulates the loader: it loads no library and runs no kernel"


def check_document(diagnosis: Diagnosis, environment: Environment, machine: Machine, *,
                   projects: Collection[str], root: str | None, wheels: Sequence[str] = (),
                   reason: str = REASON) -> dict[str, Any]:
    """All that was found. `projects`: whose installed packages are listed; `root`: the tree, None for this machine.

    `reason`: why nothing was loaded. A repair puts its plan and what became of it in the place of the last three.
    """
    clean = all(each.severity == "note" for each in diagnosis.findings)
    return {
        "environment": {**environment_document(environment, machine, projects, root), "wheels": list(wheels)},
        "levels": [{"name": each.name, "verdict": each.verdict, "text": each.text} for each in diagnosis.levels],
        "findings": [finding_document(each) for each in diagnosis.findings],
        "undecided": [{"subject": each.subject, "reason": each.reason} for each in diagnosis.undecided],
        "plan": {"actions": []},
        "applied": None,
        "verified": {"static": "clean" if clean else "findings", "load": "cannot-tell", "kernel": "cannot-tell",
                     "reason": reason},
    }


def finding_document(finding: Finding) -> dict[str, Any]:
    """One finding; every key is always there."""
    culprit, requester = finding.culprit, finding.requester
    return {
        "code": finding.code, "kind": finding.kind, "severity": finding.severity, "level": finding.level,
        "summary": finding.summary, "why": finding.why,
        "culprit": {"path": culprit.path, "package": culprit.package, "variable": culprit.variable},
        "requester": {"path": requester.path, "package": requester.package} if requester else None,
        "symbols": list(finding.symbols), "evidence": list(finding.evidence), "error": finding.error,
        "winner": finding.winner, "loser": finding.loser, "cure": list(finding.cure),
        "repairable": finding.repairable, "why_not": finding.why_not,
        "installs": [{"package": each.package, "manager": each.manager, "specifier": each.specifier,
                      "version": each.version, "breaks": list(each.breaks)} for each in finding.installs],
        "built_for": None if finding.built_for is None else {
            "torch": list(finding.built_for.torch), "string_abi": finding.built_for.string_abi,
            "index_torch": list(finding.built_for.index), "unknown": list(finding.built_for.unknown)},
    }


def environment_document(environment: Environment, machine: Machine, projects: Collection[str],
                         root: str | None) -> dict[str, Any]:
    """What a script asks of an environment; the thousands of files that were read are not in it."""
    packages = [{"name": each.name, "version": each.version, "manager": each.manager}
                for each in environment.distributions if each.name in projects]
    if environment.conda is not None:
        packages += [{"name": each.name, "version": each.version, "manager": "conda"}
                     for each in environment.conda.packages if each.name in projects and not each.projects]
    python = environment.python
    return {
        "prefix": environment.prefix, "found_via": environment.found_via, "root": root,
        "python": python_document(python), "platform": python.platform if python else None,
        "venv": venv_document(environment.venv), "conda": conda_document(environment.conda),
        "sites": [each.path for each in environment.sites if each.exists],
        "projects": len(environment.distributions), "packages": packages, "machine": machine_document(machine),
        "variables": dict(machine.variables),
        "notes": [{"path": each.path, "reason": each.reason} for each in environment.notes[:MOST_NOTES]],
        "notes_left_out": max(0, len(environment.notes) - MOST_NOTES),
    }


def python_document(python: Python | None) -> dict[str, Any] | None:
    if python is None:
        return None
    return {"minor": python.minor, "version": python.version, "implementation": python.implementation,
            "free_threaded": python.free_threaded, "executable": python.executable, "base": python.base_prefix}


def venv_document(venv: Venv | None) -> dict[str, Any] | None:
    return {"system_site_packages": venv.system_site_packages, "made_by": venv.made_by} if venv else None


def conda_document(conda: CondaPrefix | None) -> dict[str, Any] | None:
    return {"base": conda.base, "packages": len(conda.packages)} if conda else None


def machine_document(machine: Machine) -> dict[str, Any]:
    """The system below Python; null for what cannot be told."""
    return {
        "live": machine.live, "architecture": machine.architecture, "kernel": machine.kernel,
        "distribution": machine.release.name if machine.release else None, "libc": machine.libc,
        "glibc": machine.glibc.version if machine.glibc else None, "libstdcxx": library_document(machine.libstdcxx),
        "container": machine.container.kind if machine.container else None, "wsl": machine.wsl is not None,
        "jetson": machine.jetson.release or machine.jetson.model or "unknown" if machine.jetson else None,
        "modules": [each.name for each in machine.modules], **driver_document(machine.driver),
        "toolkits": [{"path": each.path, "version": each.version, "found_via": list(each.found_via)}
                     for each in machine.toolkits],
    }


def library_document(library: SystemLibrary | None) -> dict[str, Any] | None:
    newest: Mapping[str, str] = dict(library.newest) if library else {}
    return {"path": library.path, "version": library.version, "newest": newest} if library else None


def driver_document(driver: Driver) -> dict[str, Any]:
    return {
        "driver": driver.kernel_module.version if driver.kernel_module else None,
        "driver_libraries": [{"path": each.path, "version": each.version, "origin": each.origin}
                             for each in driver.libraries],
        "gpus": [{"name": each.name, "capability": each.capability, "mig": each.mig} for each in driver.gpus],
    }
