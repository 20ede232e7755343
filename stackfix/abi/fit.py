"""Whether a compiled package fits an environment, one axis after the other. What nothing tells is no fault."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from stackfix.abi.facts_python import installers_refuse, module_abis
from stackfix.abi.fit_libraries import cuda_axis, cudnn_axis, library_axes, needed_axis
from stackfix.abi.fit_torch import torch_axes
from stackfix.abi.host import CANNOT_TELL, DOES_NOT_FIT, FITS, Axis, Host, HostSymbols, Lacking
from stackfix.abi.mangled import demangle
from stackfix.abi.records import AbiFacts, Books
from stackfix.inspect.fatbin_records import GpuArchs

VERSIONED = re.compile(r"([A-Z]+)_([\d.]+)")
RunsOn = Callable[[GpuArchs, str], str]     # GPU code and capability: "native", "jit", "no", "no-code", "cannot-tell"


def fit(facts: AbiFacts, host: Host, offers: HostSymbols | None, books: Books, runs_on: RunsOn) -> tuple[Axis, ...]:
    """All axes of which the package has something to say. `offers`: None where only a release of torch was named."""
    return tuple(axes(facts, host, offers, books, runs_on))


def verdict_of(axes: tuple[Axis, ...]) -> str:
    """One axis that does not fit decides; else one that cannot be told."""
    found = {each.verdict for each in axes}
    return next((each for each in (DOES_NOT_FIT, CANNOT_TELL) if each in found), FITS)


def axes(facts: AbiFacts, host: Host, offers: HostSymbols | None, books: Books, runs_on: RunsOn) -> Iterator[Axis]:
    if host.torch is not None:
        yield from torch_axes(facts, host.torch, offers, books.torch)
    if facts.cuda and (host.torch is not None or host.prefix is not None):
        yield cuda_axis(facts, host)
    if facts.cudnn and (host.prefix is not None or host.cudnn is not None):
        yield cudnn_axis(facts, host)
    yield from library_axes(facts, host, offers, books.nvidia)
    if host.prefix is None:
        return
    yield from needed_axis(facts, offers)
    if (python := python_axis(facts, host)) is not None:
        yield python
    if facts.machine:
        yield machine_axis(facts, host)
    if facts.glibc is not None:
        yield glibc_axis(facts.glibc, host)
    if facts.libstdcxx or facts.standard:
        yield standard_axis(facts, host, offers)
    if facts.gpu is not None and facts.gpu.fatbins and host.capabilities:
        yield gpu_axis(facts.gpu, host, runs_on)


def python_axis(facts: AbiFacts, host: Host) -> Axis | None:
    """The interpreter: by the file's name, which decides whether a wheel is installed, and by its modules' names.

    None where nothing is asked of it. WHEEL's tags are no more than what the builder said of it.
    """
    needs = " or ".join(facts.python) + (f" from Python {facts.python_floor} on" if facts.python_floor else "")
    if refused := name_for_others(facts, host):
        return Axis(name="Python", verdict=DOES_NOT_FIT, needs=needs or refused, has=host.python_abi,
                    reason=f"its name says {refused}: installers refuse it for this Python")
    if not facts.python:
        return None
    if host.python is None or host.python_abi is None:
        return Axis(name="Python", verdict=CANNOT_TELL, needs=needs, has=None, reason="the environment's is not known")
    stable = "abi3t" if host.python_abi.endswith("t") else "abi3"
    if host.python_abi in facts.python:
        verdict, reason = FITS, "built for this one"
    elif stable in facts.python and host.python_abi.startswith("cp"):
        new_enough = facts.python_floor is None or numbers(host.python) >= numbers(facts.python_floor)
        verdict = FITS if new_enough else DOES_NOT_FIT
        reason = "the stable ABI" if new_enough else f"the stable ABI of Python {facts.python_floor} and newer"
    elif module_abis(facts.subject.files):
        verdict, reason = DOES_NOT_FIT, f"this Python looks for modules of {host.python_abi}, and finds none"
    else:
        verdict, reason = CANNOT_TELL, "only a tag says so: none of its files is named for one Python"
    return Axis(name="Python", verdict=verdict, needs=needs, has=host.python_abi, reason=reason)


def name_for_others(facts: AbiFacts, host: Host) -> str | None:
    """The tags in the name of a wheel that installers do not take for the environment's Python."""
    subject = facts.subject
    if subject.origin != "wheel" or subject.file_name is None or host.python is None or host.python_abi is None:
        return None
    refused = installers_refuse(subject.tags, host.python, host.python_abi)
    return " or ".join(dict.fromkeys(each.rpartition("-")[0] for each in subject.tags)) if refused else None


def machine_axis(facts: AbiFacts, host: Host) -> Axis:
    """The processor."""
    needs = " or ".join(facts.machine)
    if host.machine is None:
        return Axis(name="machine", verdict=CANNOT_TELL, needs=needs, has=None, reason="which one it is is not known")
    fits = host.machine in facts.machine
    return Axis(name="machine", verdict=FITS if fits else DOES_NOT_FIT, needs=needs, has=host.machine,
                reason="the same" if fits else "compiled for another processor")


def glibc_axis(floor: str, host: Host) -> Axis:
    """The C library."""
    needs = f"{floor} or newer"
    if host.glibc is None:
        return Axis(name="glibc", verdict=CANNOT_TELL, needs=needs, has=None, reason="no glibc that states its version")
    fits = numbers(host.glibc) >= numbers(floor)
    return Axis(name="glibc", verdict=FITS if fits else DOES_NOT_FIT, needs=needs, has=host.glibc,
                reason="new enough" if fits else f"asks for GLIBC_{floor}, which glibc {host.glibc} does not have")


def standard_axis(facts: AbiFacts, host: Host, offers: HostSymbols | None) -> Axis:
    """The C++ library: symbol versions, and names without one that torch may have exported once."""
    needs = ", ".join(facts.libstdcxx) or f"{len(facts.standard)} names without a version"
    newest = dict(each for version in host.standard if (each := split(version)))
    if host.libstdcxx is None:
        return Axis(name="libstdc++", verdict=CANNOT_TELL, needs=needs, has=None, reason="no libstdc++.so.6 was found")
    old = [version for version in facts.libstdcxx
           if (wanted := split(version)) and numbers(newest.get(wanted[0], "0")) < numbers(wanted[1])]
    lacks = frozenset(offers.standard_lacks(facts.standard) or ()) if offers and facts.standard else frozenset[str]()
    files = {symbol.name: file.path for file in facts.subject.files for symbol in file.undefined}
    missing = tuple(Lacking(name=name, demangled=demangle(name), file=files.get(name, ""))
                    for name in facts.standard if name in lacks)
    reason = "new enough"
    if old:
        reason = f"{host.libstdcxx} does not have {', '.join(old)}"
    elif missing:
        reason = f"{host.libstdcxx} lacks {len(missing)} of its names, and so does torch"
    return Axis(name="libstdc++", verdict=DOES_NOT_FIT if old or missing else FITS, needs=needs,
                has=", ".join(reversed(host.standard)), reason=reason, missing=missing)


def gpu_axis(archs: GpuArchs, host: Host, runs_on: RunsOn) -> Axis:
    """Its GPU code. Loading does not fail without: kernels do."""
    answers = {capability: runs_on(archs, capability) for capability in host.capabilities}
    lost = [capability for capability, answer in answers.items() if answer in {"no", "no-code"}]
    unsure = [capability for capability, answer in answers.items() if answer == "cannot-tell"]
    compiled = [capability for capability, answer in answers.items() if answer == "jit"]
    verdict = DOES_NOT_FIT if lost else CANNOT_TELL if unsure else FITS
    reason = (f"no code for {', '.join(lost)}" if lost else f"code for {', '.join(unsure)} of a kind that is not known"
              if unsure else f"PTX, which the driver compiles for {', '.join(compiled)}" if compiled
              else "machine code for it")
    return Axis(name="GPU", verdict=verdict, needs=" ".join((*archs.cubins, *archs.ptx, *archs.others)),
                has=", ".join(host.capabilities), reason=reason)


def split(version: str) -> tuple[str, str] | None:
    """("GLIBCXX", "3.4.30")."""
    match = VERSIONED.fullmatch(version)
    return (match[1], match[2]) if match else None


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdecimal() and len(part) < 10)


__all__ = ["fit", "verdict_of"]
