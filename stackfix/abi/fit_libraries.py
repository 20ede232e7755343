"""Whether the CUDA libraries of an environment have what a package is linked against and calls."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from stackfix.abi.calls import NVIDIA
from stackfix.abi.facts_libraries import cuda_majors, cudnn_majors
from stackfix.abi.host import CANNOT_TELL, CPU, DOES_NOT_FIT, FITS, Axis, Host, HostSymbols, Lacking
from stackfix.abi.mangled import demangle
from stackfix.abi.names import is_torch_library
from stackfix.abi.records import AbiFacts, Bounds, CompiledFile, NvidiaBook

# Libraries of every system, which have no symbol of torch's
SYSTEM = re.compile(r"lib(?:c|m|dl|rt|pthread|util|stdc\+\+|gcc_s|gomp|atomic|z)\.so|ld-linux|ld64")
NOWHERE = "not found: neither in the package, nor in the environment, nor where ld.so looks"
OF_DRIVER = re.compile(r"lib(?:cuda|nvidia-ml)\.so")


def cuda_axis(facts: AbiFacts, host: Host) -> Axis:
    """CUDA's major, whose libraries torch loads."""
    needs = " and ".join(f"CUDA {each}" for each in facts.cuda)
    torch, majors = host.torch, cuda_majors(left_to_others(facts.subject.files))
    if not majors:
        return Axis(name="CUDA", verdict=FITS, needs=needs, has=torch.cuda if torch else None,
                    reason="brings its own libraries of it along")
    if len(majors) > 1:
        return Axis(name="CUDA", verdict=CANNOT_TELL, needs=needs, has=torch.cuda if torch else None,
                    reason="is linked against libraries of several CUDAs")
    if torch is not None and facts.torch is not None:
        return cuda_of_torch(majors[0], needs, torch.cuda, torch.cuda_major)
    runtime = {version.partition(".")[0] for name, version in host.nvidia if name.startswith("nvidia-cuda-runtime")}
    if str(majors[0]) in runtime:
        return Axis(name="CUDA", verdict=FITS, needs=needs, has=", ".join(sorted(runtime)),
                    reason="is installed" if host.prefix is not None else "comes with torch")
    missing = "are not installed" if host.prefix is not None else "do not come with torch"
    return Axis(name="CUDA", verdict=CANNOT_TELL, needs=needs, has=", ".join(sorted(runtime)) or None,
                reason=f"its wheels {missing}; the system may have it")


def cuda_of_torch(major: int, needs: str, cuda: str | None, installed: int | None) -> Axis:
    """Against the CUDA of torch."""
    if cuda == CPU:
        return Axis(name="CUDA", verdict=DOES_NOT_FIT, needs=needs, has="none", reason="torch is a build for the CPU")
    if installed is None:
        return Axis(name="CUDA", verdict=CANNOT_TELL, needs=needs, has=None, reason="torch does not tell its own")
    fits = installed == major
    return Axis(name="CUDA", verdict=FITS if fits else DOES_NOT_FIT, needs=needs, has=cuda,
                reason="the same major" if fits else f"torch was built for CUDA {cuda}")


def cudnn_axis(facts: AbiFacts, host: Host) -> Axis:
    """cuDNN's major, which is in its soname."""
    needs = " and ".join(f"cuDNN {each}" for each in facts.cudnn)
    majors = cudnn_majors(left_to_others(facts.subject.files))
    if not majors:
        return Axis(name="cuDNN", verdict=FITS, needs=needs, has=host.cudnn, reason="brings its own along")
    if len(majors) > 1:
        return Axis(name="cuDNN", verdict=CANNOT_TELL, needs=needs, has=host.cudnn,
                    reason="is linked against several of them, for one of which a part of it may be")
    if host.cudnn is None:
        return Axis(name="cuDNN", verdict=CANNOT_TELL, needs=needs, has=None,
                    reason="none is installed in the environment; the system may have one")
    fits = tuple(map(str, majors)) == (host.cudnn.partition(".")[0],)
    return Axis(name="cuDNN", verdict=FITS if fits else DOES_NOT_FIT, needs=needs, has=host.cudnn,
                reason="the same major" if fits else "another major has other sonames")


def left_to_others(files: Sequence[CompiledFile]) -> tuple[str, ...]:
    """DT_NEEDED without what lies in the package itself."""
    own = frozenset[str]().union(*(file.names for file in files))
    return tuple(dict.fromkeys(soname for file in files for soname in file.elf.needed if soname not in own))


def libraries_of_others(files: Sequence[CompiledFile]) -> tuple[str, ...]:
    """DT_NEEDED that lies in no file of the package and is neither torch's, NVIDIA's nor the system's."""
    return tuple(soname for soname in left_to_others(files)
                 if not is_torch_library(soname) and not NVIDIA.match(soname) and not SYSTEM.match(soname))


def library_axes(facts: AbiFacts, host: Host, offers: HostSymbols | None, book: NvidiaBook) -> Iterator[Axis]:
    """Each library of NVIDIA's of which functions are called; the driver's are no part of an environment.

    Of a release of torch alone, those that it pins.
    """
    called: dict[str, list[str]] = {}
    for call in facts.calls:
        called.setdefault(call.soname, []).append(call.name)
    pinned = dict(host.nvidia)
    for soname, names in called.items():
        known = host.prefix is not None or any(each.package in pinned for each in facts.library_bounds
                                               if each.soname == soname)
        if known and not OF_DRIVER.match(soname):
            yield library_axis(soname, names, facts, host, offers, book)


def library_axis(soname: str, names: Sequence[str], facts: AbiFacts, host: Host, offers: HostSymbols | None,
                 book: NvidiaBook) -> Axis:
    """One library: its real exports, else what the book has of the installed version."""
    bounds = [each for each in facts.library_bounds if each.soname == soname]
    versions = dict(host.nvidia)
    installed = next(((each, versions[each.package]) for each in bounds if each.package in versions), None)
    has = f"{installed[0].package} {installed[1]}" if installed else None
    needs = f"{len(names)} function{'s' * (len(names) != 1)}{floor_of(installed[0] if installed else None)}"
    lacks = offers.library_lacks(soname, names) if offers else None
    unsure: Sequence[str] = ()
    if lacks is None and installed:
        provided = book.provides(installed[0].package, installed[1], soname, names)
        lacks, unsure = provided.missing, provided.unsure
    if lacks is None:
        return Axis(name=soname, verdict=CANNOT_TELL, needs=needs, has=None,
                    reason="no such library in the environment; the system may have it")
    files = {symbol.name: file.path for file in facts.subject.files for symbol in file.undefined}
    gone = frozenset(lacks)
    missing = tuple(Lacking(name=name, demangled=demangle(name), file=files.get(name, "")) for name in names
                    if name in gone)
    if missing:
        return Axis(name=soname, verdict=DOES_NOT_FIT, needs=needs, has=has, missing=missing,
                    reason=f"it lacks {len(missing)} of them")
    if unsure:
        return Axis(name=soname, verdict=CANNOT_TELL, needs=needs, has=has,
                    reason="this version was not read, and those that were differ in what they have")
    return Axis(name=soname, verdict=FITS, needs=needs, has=has, reason="it has them all")


def needed_axis(facts: AbiFacts, offers: HostSymbols | None) -> Iterator[Axis]:
    """Libraries that are nowhere, where each file needs one. Another file may load them first, so nothing is sure."""
    lost, files = lost_libraries(facts, offers), facts.subject.files
    if lost and all(any(soname in lost for soname in file.elf.needed) for file in files):
        yield Axis(name="needs", verdict=CANNOT_TELL, needs=", ".join(lost), has=None, reason=NOWHERE)


def lost_for_some(facts: AbiFacts, offers: HostSymbols | None) -> Iterator[tuple[str, str]]:
    """A remark on each file that needs such libraries, where others need none: modules for one release of FFmpeg."""
    if any(needed_axis(facts, offers)):
        return
    lost = lost_libraries(facts, offers)
    for file in facts.subject.files if lost else ():
        if wanted := [soname for soname in file.elf.needed if soname in lost]:
            yield file.path, f"needs {', '.join(wanted)}, {NOWHERE}"


def lost_libraries(facts: AbiFacts, offers: HostSymbols | None) -> Sequence[str]:
    """DT_NEEDED that no place has: FFmpeg's, a driver's. NVIDIA's others, which are called, have axes of their own."""
    if offers is None:
        return ()
    called = {call.soname for call in facts.calls if not OF_DRIVER.match(call.soname)}
    folders = tuple(dict.fromkeys(placed(folder, file.path) for file in facts.subject.files
                                  for text in (file.elf.rpath, file.elf.runpath) for folder in (text or "").split(":")))
    return tuple(soname for soname in left_to_others(facts.subject.files) if soname not in called
                 and not is_torch_library(soname) and not offers.finds(soname, folders))


def placed(folder: str, path: str) -> str:
    """A folder of RUNPATH, with the file's own behind $ORIGIN: "$ORIGIN/ext/../lib" of ext/_C.so."""
    own = f"$ORIGIN/{path.rpartition('/')[0]}"
    return folder.replace("${ORIGIN}", "$ORIGIN").replace("$ORIGIN", own, 1)


def floor_of(bounds: Bounds | None) -> str:
    """`, from nvidia-cublas-cu12 12.4.2.65 on`."""
    if bounds is None or not (bounds.floor or bounds.ceiling):
        return ""
    parts = [f"from {bounds.floor} on" if bounds.floor else "", f"until {bounds.ceiling}" if bounds.ceiling else ""]
    return f", {' '.join(filter(None, parts))}"


__all__ = ["cuda_axis", "cudnn_axis", "left_to_others", "libraries_of_others", "library_axes",
           "lost_for_some", "needed_axis"]
