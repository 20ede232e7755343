"""Libraries that no package of the environment has."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from stackfix.diagnose.faults_records import Fault
from stackfix.diagnose.faults_text import file_name, level_of, limited, needs_lines, requester_of, who_needs
from stackfix.diagnose.finding_records import SEVERITIES, Culprit, Finding
from stackfix.diagnose.install_lines import reinstall
from stackfix.diagnose.make_finding import make_finding
from stackfix.diagnose.missing_carriers import Carrier, bring, find_carrier, installed_carrier
from stackfix.diagnose.provenance import describe, named
from stackfix.diagnose.records import MissingLibrary
from stackfix.diagnose.releases import admits
from stackfix.diagnose.situation import View
from stackfix.inspect.environment_records import Distribution, Owner
from stackfix.inspect.records import FileAt

ANY = re.compile(r"\*\[0-9\]|\*")
SHOWN = 16      # places that were tried


def nowhere(view: View, faults: Sequence[Fault]) -> Finding:
    """SF401 of all that one requester misses, in the loader's order."""
    fault, names = faults[0], [each.name for each in faults]
    imported = view.distributions.get(fault.opening.project or "")
    if imported is not None and fault.requester is None and view.is_own(fault.name):
        return never_there(view, fault, imported)
    carriers = {each.name: find_carrier(view, each.name, each.family, each.requester, each.opening.project)
                for each in faults}
    carrier, installed = carriers[fault.name], installed_carrier(view, fault.family)
    severity = min((severity_of(view, each) for each in faults), key=SEVERITIES.index)
    unknown = [name for name in names if carriers[name] is None]
    return make_finding(
        "SF401", severity, level=level_of(fault),
        summary=summary(fault, [shown(each) for each in names])
                + (f": {named(installed)} does not have it" if installed and len(names) == 1 else ""),
        why=why(fault, carrier, installed, severity),
        culprit=Culprit(package=named(installed) or (carrier.name if carrier else None),
                        path=None if installed or carrier else fault.name),
        requester=requester_of(view, fault),
        evidence=(*(line for each in faults for line in needs_lines(view, each)), *tried_lines(fault),
                  *(f"not on any search path: {each}" for name in names for each in elsewhere(view, name))),
        error=seen_error(fault), cure=tuple(cures(view, carriers, installed)),
        why_not=f"which package carries {limited(unknown)} is not known" if unknown else None)


def summary(fault: Fault, names: Sequence[str]) -> str:
    """What is nowhere, and who wants it."""
    verb = "is" if len(names) == 1 else "are"
    if fault.requester is None:
        return f"{limited(names)} {verb} nowhere to be found, and {who_opens(fault)}"
    return f"{limited(names)}, which {who_needs(fault)} needs, {verb} nowhere to be found"


def who_opens(fault: Fault) -> str:
    """The import whose own code opens it, which is no file that needs it."""
    return f"{fault.opening.what.partition(' opens ')[0]} opens it"


def shown(name: str) -> str:
    """A name for people: patterns of a package's own code without their signs."""
    return ANY.sub("…", name)


def seen_error(fault: Fault) -> str | None:
    """The loader's line; None where a package's own code finds nothing to open: it has words of its own."""
    return None if ANY.search(fault.name) else fault.failure.message()


def never_there(view: View, fault: Fault, imported: Distribution) -> Finding:
    """SF401 of a file that an import opens in its own package: a build without it, for its RECORD has none either."""
    what = f"{imported.name} {imported.version}"
    return make_finding(
        "SF401", fault.severity, level=level_of(fault),
        summary=f"{what} has no {shown(file_name(fault.name))}, which its import opens",
        why="Nothing of it was deleted: what is installed is a build without that file, such as one for the CPU, or "
            "one whose compilation was left out.",
        culprit=Culprit(path=fault.name, package=what), requester=requester_of(view, fault),
        evidence=(*needs_lines(view, fault), f"{imported.metadata}: {imported.version}"),
        error=seen_error(fault),
        cure=(reinstall(view, imported),),
        why_not="whether another build of it is wanted only the user can tell")


def severity_of(view: View, fault: Fault) -> str:
    """A library of the system that one module among others misses may be for a part that nobody imports."""
    if fault.severity != "warning":
        return fault.severity
    failing = {each.opening.request.name for each in fault.sightings}
    projects = {each.opening.project for each in fault.sightings} - {None}
    works = sum(each.project in projects and not each.outcome.failures for each in view.openings)
    asked = failing & set(view.situation.extra)
    return "note" if works > len(failing) and not asked else "warning"


def why(fault: Fault, carrier: Carrier | None, installed: Owner | None, severity: str) -> str:
    if installed is not None and carrier is not None and is_that(installed, carrier):
        return f"{named(installed)} is installed and should have it: its files are not complete; {carrier.why}."
    if installed is not None and carrier is not None:
        return f"{named(installed)} is installed, which has another version of the library; {carrier.why}."
    if carrier is not None:
        return f"{carrier.why}, and it is not installed."
    text = f"The search for {fault.name} came to its end; no package of the environment has it."
    return text + (" Most other modules of the package can be opened." if severity == "note" else "")


def is_that(installed: Owner, carrier: Carrier) -> bool:
    """Whether the carrier is installed already, in a version that will do: installing it again does nothing."""
    return installed.name == carrier.name and (not carrier.specifier or admits(carrier.specifier, installed.version))


def tried_lines(fault: Fault) -> Iterator[str]:
    """Places that were looked at, in order."""
    failure = fault.failure
    tried = failure.tried if isinstance(failure, MissingLibrary) else ()
    lines = list(dict.fromkeys(
        f"tried: {each.path} via {each.step}" + (f" of {file_name(each.owner)}" if each.owner else "")
        + (f": {each.why}" if each.why != "no such file" else "") for each in tried))
    yield from lines[:SHOWN]
    if len(lines) > SHOWN:
        yield f"and {len(lines) - SHOWN} more places"


def elsewhere(view: View, name: str) -> Iterator[str]:
    """Copies in CUDA toolkits of the machine."""
    for toolkit in view.machine.toolkits:
        for folder in toolkit.library_folders:
            at = view.files.at(f"{folder}/{name}")
            if isinstance(at, FileAt):
                yield describe(view, at.path, at.real_path)


def cures(view: View, carriers: Mapping[str, Carrier | None], installed: Owner | None) -> Iterator[str]:
    """Commands that bring the libraries."""
    wanted = [each for each in carriers.values() if each is not None]
    if installed is not None and any(is_that(installed, each) for each in wanted):
        yield reinstall(view, installed)
        wanted = [each for each in wanted if not is_that(installed, each)]
    yield from bring(view, wanted)
    for name in (each for each, carrier in carriers.items() if carrier is None):
        if installed is not None:
            yield f"install a version of {installed.name} that has {name}"
        else:
            yield f"apt-file search {name}  # the system's package that has it; else: dnf provides '*/{name}'"
    copies = [each for name in carriers for each in elsewhere(view, name)]
    if copies:
        yield f"or use the copies of this machine, if their version fits: {limited(copies)}"
