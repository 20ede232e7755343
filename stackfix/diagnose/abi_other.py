"""Extensions beside a CPU torch, a torch of another CUDA, none at all; symbols that nobody has."""

from __future__ import annotations

from collections.abc import Iterator

from stackfix.diagnose.abi_cures import for_the_extension, for_this_torch, rebuild, with_extension
from stackfix.diagnose.abi_groups import Extension
from stackfix.diagnose.abi_names import readable
from stackfix.diagnose.abi_range import told_of_torch
from stackfix.diagnose.abi_stated import stated_torch
from stackfix.diagnose.abi_text import (
    culprit_of,
    evidence_of,
    file_lines,
    requester_of,
    seen_error,
    severity_of,
    severity_of_unknown,
    told_of,
)
from stackfix.diagnose.faults_cuda import cuda_major
from stackfix.diagnose.faults_symbols import is_torch_library, speaks_of_torch
from stackfix.diagnose.finding_records import Culprit, Finding, Requester
from stackfix.diagnose.imports_projects import required_names
from stackfix.diagnose.install_lines import reinstall
from stackfix.diagnose.installed_torch import CPU, InstalledTorch, platform_of
from stackfix.diagnose.library_symbols import owner_lines
from stackfix.diagnose.make_finding import make_finding
from stackfix.diagnose.situation import View

DEFAULT_INDEX = "default"       # of torch's builds: no other is locked

NO_LINK = "a link from one CUDA major's name to another's file does not help: the functions differ"


def cpu_torch(view: View, extension: Extension, torch: InstalledTorch) -> Finding:
    """SF502."""
    wanted, cuda = tuple(extension.missing), extension.cuda_major
    rows = [each for each in view.matrix.torch if each.version == torch.release and each.cuda != CPU
            and each.index == DEFAULT_INDEX and each.platform == platform_of(view)
            and cuda in {None, int(each.cuda.partition(".")[0])}]
    return make_finding(
        "SF502", severity_of(view, extension),
        summary=f"{extension.label} is built for CUDA, and {torch.name} for the CPU",
        why=f"It is linked against {', '.join(wanted)}, which a CPU build of torch does not have. A requirement such "
            f"as torch=={torch.release} takes the CPU build for satisfied, so no installer minds.",
        culprit=Culprit(package=torch.name), requester=requester_of(view, extension),
        symbols=tuple(extension.torch_symbols),
        evidence=(*evidence_of(extension), f"{torch.title}, by {torch.cuda_from}", *file_lines(extension)),
        error=seen_error(extension),
        cure=tuple(f"stackfix lock --torch {each.version} --cuda {each.cuda}{with_extension(extension)}"
                   for each in rows[:1]) or (f"install torch {torch.release} for CUDA from the index that carries it",),
        why_not=None if rows else f"no build of torch {torch.release} for CUDA is known here")


def other_cuda(view: View, extension: Extension, torch: InstalledTorch) -> Finding:
    """SF504."""
    major = extension.cuda_major
    name = next(each for each in extension.missing if not is_torch_library(each))
    rows = [each for each in view.matrix.torch if each.version == torch.release and each.platform == platform_of(view)
            and each.index == DEFAULT_INDEX and each.cuda.partition(".")[0] == str(major)]
    better, keep = tuple(for_this_torch(view, extension, torch)), with_extension(extension)
    told = told_of_torch(view, extension)
    stated = tuple(stated_torch(view, extension.distribution))
    back = [f"stackfix lock --torch {each.version} --cuda {each.cuda}{keep}" for each in rows[:1]] or [
        *(each.line for each in for_the_extension(view, extension, stated, told, torch))]
    return make_finding(
        "SF504", severity_of(view, extension),
        summary=f"{extension.label} is built for CUDA {major}, and {torch.name} for CUDA {torch.cuda}",
        why=f"It is linked against {name}, and torch brings the libraries of CUDA {torch.cuda_major}.",
        culprit=culprit_of(view, extension), requester=requester_of(view, extension),
        symbols=tuple(extension.torch_symbols),
        evidence=(*evidence_of(extension), f"{torch.title}, by {torch.cuda_from}", *file_lines(extension)),
        error=seen_error(extension),
        cure=(*(each.line for each in better), *back, *rebuild(view, extension), NO_LINK),
        installs=tuple(each.install for each in better), built_for=told.record() if told else None,
        why_not=None if better or back else f"no build of {extension.name} for CUDA {torch.cuda_major} is known")


def foreign_cuda(view: View, torch: InstalledTorch) -> Iterator[Finding]:
    """SF504 where the other major's runtime is found all the same, in the system as a rule: two in one process."""
    seen = told_of(view)
    for opening in view.openings:
        state, outcome = opening.outcome.attempted, opening.outcome
        for number in outcome.loaded if opening.may_fail is None and not outcome.failures else ():
            object_ = state.objects[number]
            if not any(is_torch_library(name) for name in object_.elf.needed):
                continue
            majors = {major: name for name in object_.elf.needed if (major := cuda_major((name,))) is not None}
            owners = view.owners(object_.path, object_.real_path)
            package = f"{owners[0].name} {owners[0].version}" if owners else None
            label = package or object_.path
            wrong = next((major for major in majors if major != torch.cuda_major), None)
            if torch.cuda_major is None or wrong is None or label in seen or (owners and owners[0].name == "torch"):
                continue
            seen.add(label)
            found = state.find(majors[wrong])
            yield make_finding(
                "SF504", "warning",
                summary=f"{label} is built for CUDA {wrong}, and {torch.name} for CUDA {torch.cuda}",
                why=f"It is linked against {majors[wrong]}, which is found outside of torch's CUDA: two CUDA runtimes "
                    "in one process.", culprit=Culprit(path=object_.path, package=package),
                requester=Requester(path=object_.path, package=package),
                evidence=(f"{majors[wrong]} is {found.path}" if found else f"needs {majors[wrong]}",
                          f"{torch.title}, by {torch.cuda_from}", f"seen at: {opening.what}"),
                cure=(f"install the build of {label} for CUDA {torch.cuda_major}",),
                why_not=f"no build of {label} for CUDA {torch.cuda_major} is known")


def no_torch(view: View, extension: Extension) -> Finding:
    """SF401: torch's libraries are missing because torch is. A package that does not require it has another way."""
    names, known = tuple(extension.missing), extension.distribution
    optional = known is not None and "torch" not in required_names(known.requires)
    return make_finding(
        "SF401", "note" if optional else severity_of(view, extension), level="torch",
        summary=f"{extension.label} needs torch, which is not installed",
        why=f"{', '.join(names)} are torch's own libraries, and no torch is in this environment.",
        culprit=Culprit(package="torch", path=names[0]), requester=requester_of(view, extension),
        symbols=tuple(extension.torch_symbols), evidence=(*evidence_of(extension), *file_lines(extension)),
        error=seen_error(extension), cure=(f"stackfix lock --with {extension.name}",),
        why_not="which torch it was built for is not known here")


def torch_itself(view: View, extension: Extension) -> Finding:
    """SF302: torch's own libraries are of different builds."""
    first = extension.first
    loaded = [each for each in first.opening.outcome.attempted.objects if is_torch_library(each.elf.soname or "")]
    return make_finding(
        "SF302", severity_of(view, extension), level="torch",
        summary=f"{extension.label}: its own libraries do not fit together",
        why="One of torch's libraries needs what none of the others has: they are of different builds, left over from "
            "an interrupted upgrade, another installer, or a libtorch elsewhere that was found first.",
        culprit=culprit_of(view, extension), requester=requester_of(view, extension),
        symbols=tuple(extension.torch_symbols),
        evidence=(*evidence_of(extension), *(f"{each.elf.soname} is {each.path}" for each in loaded)),
        error=first.failure.message(),
        cure=(reinstall(view, extension.distribution),) if extension.distribution else (),
        why_not=None if extension.distribution else "no package is known that has these files")


def unknown_symbol(view: View, extension: Extension) -> Finding:
    """SF503."""
    symbols = (*extension.torch_symbols, *extension.other_symbols)
    needed = [name for each in extension.files for name in each.elf.needed]
    known = tuple(owner_lines(view, extension.other_symbols, needed))
    foreign = all(map(speaks_of_torch, symbols))
    return make_finding(
        "SF503", severity_of_unknown(view, extension), summary=f"{extension.label} needs {readable(symbols[0])}"
        + (f" and {len(symbols) - 1} more symbols" if len(symbols) > 1 else "") + ", which no library provides",
        why="No library that it is linked against has the symbol, and none that is loaded before. It was built against "
            "another release of a library, or its maker did not link all that it uses.",
        culprit=culprit_of(view, extension), requester=requester_of(view, extension), symbols=symbols,
        evidence=(*evidence_of(extension), *known,
                  *(f"{each.path} is linked against: {', '.join(each.elf.needed) or 'nothing'}"
                    for each in extension.files[:2]), *file_lines(extension)),
        error=seen_error(extension), cure=() if foreign else rebuild(view, extension),
        why_not="it has to be linked against the library that has the symbol" if known or foreign
        else "nothing tells who should have the symbol")
