"""The JSON document of `stackfix abi`. Its shape: docs/abi.md."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from stackfix.abi.host import Answer, Axis, Host
from stackfix.abi.records import AbiFacts, Compiled, CompiledFile, Deciding, TorchRange
from stackfix.inspect.fatbin_records import GpuArchs, UnreadableFatbin


def abi_document(answer: Answer) -> dict[str, Any]:
    """All that was found; every key is always there."""
    facts = answer.facts
    return {
        "subject": subject_document(facts.subject),
        **facts_document(facts),
        "claims": [{"source": each.source, "text": each.text, "says": each.says, "found": each.found,
                    "holds": each.holds, "minors": list(each.minors)} for each in answer.claims],
        "fit": fit_document(answer),
        "nearest": [{"package": each.nearest.package, "version": each.nearest.version, "build": each.nearest.build,
                     "basis": each.nearest.basis, "command": each.command} for each in answer.suggestions],
        "symbols": symbols_document(answer.symbols) if answer.symbols is not None else None,
        "notes": [{"path": path, "reason": reason} for path, reason in answer.notes],
    }


def subject_document(subject: Compiled) -> dict[str, Any]:
    """What was asked about."""
    return {
        "name": subject.name, "version": subject.version, "origin": subject.origin, "source": subject.source,
        "file_name": subject.file_name, "tags": list(subject.tags), "requires": list(subject.requires),
        "files": [file_document(each) for each in subject.files],
        "unreadable": [{"path": path, "reason": reason} for path, reason in subject.unreadable],
    }


def file_document(file: CompiledFile) -> dict[str, Any]:
    """One shared object; its symbols are counted."""
    elf = file.elf
    return {"path": file.path, "size": elf.size, "bits": elf.bits, "machine": elf.machine, "soname": elf.soname,
            "needed": list(elf.needed), "rpath": elf.rpath, "runpath": elf.runpath, "build_id": elf.build_id,
            "undefined": len(file.undefined), "supplied": file.supplied, "gpu": gpu_document(file.archs)}


def facts_document(facts: AbiFacts) -> dict[str, Any]:
    """What it was built for."""
    return {
        "torch": torch_document(facts.torch) if facts.torch else None,
        "cuda": list(facts.cuda), "cudnn": list(facts.cudnn), "python": list(facts.python),
        "python_floor": facts.python_floor, "machine": list(facts.machine), "glibc": facts.glibc,
        "libstdcxx": list(facts.libstdcxx), "standard": list(facts.standard), "gpu": gpu_document(facts.gpu),
        "calls": [{"soname": each.soname, "name": each.name,
                   "since": None if each.since is None else [asdict(since) for since in each.since]}
                  for each in facts.calls],
        "libraries": [as_lists(asdict(each)) for each in facts.library_bounds],
    }


def torch_document(torch: TorchRange) -> dict[str, Any]:
    """The range of releases, and the symbols that bound it."""
    return {
        "asked": torch.asked, "minors": list(torch.minors), "index_minors": list(torch.index_minors),
        "string_abi": torch.string_abi, "cuda_build": torch.cuda_torch, "stable": torch.stable,
        "floor": symbols_document(torch.floor), "ceiling": symbols_document(torch.ceiling),
        "unknown": symbols_document(torch.unknown), "known": list(torch.known), "patches": list(torch.patches),
        "index_patches": list(torch.index_patches),
        "exceptions": [asdict(each) for each in torch.exceptions],
    }


def symbols_document(symbols: Iterable[Deciding]) -> list[dict[str, Any]]:
    """Symbols with the minors that export them."""
    return [as_lists(asdict(each)) for each in symbols]


def gpu_document(archs: GpuArchs | UnreadableFatbin | None) -> dict[str, Any] | None:
    """GPU code; null where there is none."""
    if archs is None:
        return None
    if isinstance(archs, UnreadableFatbin):
        return {"cubins": [], "ptx": [], "others": [], "fatbins": None, "unreadable": archs.reason}
    return {"cubins": list(archs.cubins), "ptx": list(archs.ptx), "others": list(archs.others),
            "fatbins": archs.fatbins, "unreadable": None}


def fit_document(answer: Answer) -> dict[str, Any] | None:
    """The comparison; null where there was nothing to compare with."""
    if answer.host is None or answer.verdict is None:
        return None
    return {"verdict": answer.verdict, "host": host_document(answer.host),
            "axes": [axis_document(each) for each in answer.axes]}


def host_document(host: Host) -> dict[str, Any]:
    """What it is compared with."""
    torch = host.torch
    return {
        "prefix": host.prefix,
        "torch": {"version": torch.version, "installed": torch.installed, "string_abi": torch.string_abi,
                  "cuda": torch.cuda, "folders": list(torch.folders)} if torch else None,
        "cudnn": host.cudnn, "nvidia": dict(host.nvidia), "python": host.python, "python_abi": host.python_abi,
        "glibc": host.glibc, "libstdcxx": {"path": host.libstdcxx, "newest": list(host.standard)}
        if host.libstdcxx else None,
        "machine": host.machine, "capabilities": list(host.capabilities),
    }


def axis_document(axis: Axis) -> dict[str, Any]:
    """One axis."""
    return {"name": axis.name, "verdict": axis.verdict, "needs": axis.needs, "has": axis.has, "reason": axis.reason,
            "missing": [asdict(each) for each in axis.missing]}


def as_lists(document: dict[str, Any]) -> dict[str, Any]:
    """Tuples as JSON has them."""
    return {key: list(value) if isinstance(value, tuple) else value for key, value in document.items()}


__all__ = ["abi_document"]
