"""One root of what does not load, in words: from a fault, and from the finding that `check` would make of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from stackfix.diagnose.abi import check_extensions
from stackfix.diagnose.families import find_two_families
from stackfix.diagnose.families_origin import find_mixed_origins
from stackfix.diagnose.faults_records import Fault
from stackfix.diagnose.faults_text import counted, lacks, seen_error, who_needs
from stackfix.diagnose.finding_records import Finding
from stackfix.diagnose.library_versions import find_library_versions
from stackfix.diagnose.machine_system import check_system_libraries
from stackfix.diagnose.missing import find_missing
from stackfix.diagnose.records import LoadedObject
from stackfix.diagnose.shadows import find_shadows
from stackfix.diagnose.situation import View
from stackfix.prove.facts import Short
from stackfix.prove.proof_records import Remedy, Trouble

CHECKS: tuple[Callable[[View], Iterable[object]], ...] = (
    find_library_versions, find_shadows, check_extensions, check_system_libraries, find_missing)
KINDS = {"symbol": "symbol", "mixed": "symbol", "torch-symbol": "symbol", "symbol-unknown": "symbol",
         "version": "version", "missing": "library", "bad": "file"}
MOST_SEEN = 8
SITE = "$SITE_PACKAGES"             # stands for a folder that nobody knows before the installation


def troubles_of(view: View, faults: Sequence[Fault], short: Short) -> tuple[Trouble, ...]:
    """One for each fault, with what the checks say of it."""
    if not faults:
        return ()
    findings = [each for check in CHECKS for each in check(view) if isinstance(each, Finding)]
    return tuple(trouble_of(view, each, finding_of(each, findings), short) for each in faults)


def beware_of(view: View, short: Short) -> tuple[str, ...]:
    """Parts that load and do not go together: two majors of one library in a process, one library of two releases."""
    found = (*find_two_families(view), *find_mixed_origins(view))
    return tuple(dict.fromkeys(clean(each.summary, short) for each in found if each.severity != "note"))


def finding_of(fault: Fault, findings: Iterable[Finding]) -> Finding | None:
    """The finding that a fault became: it has the same line of the loader, else the same symbols."""
    error, known = seen_error(fault.failure), list(findings)
    return next((each for each in known if error is not None and each.error == error), None) or next(
        (each for each in known if fault.symbols and set(fault.symbols) <= set(each.symbols)), None)


def trouble_of(view: View, fault: Fault, finding: Finding | None, short: Short) -> Trouble:
    """A fault in words."""
    provider, requester = fault.provider, fault.requester
    return Trouble(
        kind=KINDS[fault.category],
        summary=clean(finding.summary if finding else told_plainly(view, fault), short),
        error=clean(seen_error(fault.failure) or fault.failure.message(), short), library=clean(fault.name, short),
        provider=visible(short(provider)) if provider else None, provider_package=package_of(view, provider),
        requester=visible(short(requester)) if requester else None, requester_package=package_of(view, requester),
        symbols=tuple(map(visible, fault.symbols)), versions=tuple(map(visible, fault.versions)),
        seen=tuple(dict.fromkeys(clean(each.opening.what, short) for each in fault.sightings))[:MOST_SEEN],
        remedies=tuple(remedies_of(finding)) if finding else (),
        avoid=tuple(avoid_of(finding, short)) if finding else (),
    )


def told_plainly(view: View, fault: Fault) -> str:
    """What is wrong, where no check has words for it."""
    package = package_of(view, fault.provider)
    if fault.category == "missing":
        return f"{fault.name}, which {who_needs(fault)} needs, is in no wheel of the lock"
    if fault.category in {"torch-symbol", "symbol-unknown"} and fault.symbols:
        return f"no file of the lock has {counted(fault.symbols)} that {who_needs(fault)} needs"
    return f"{fault.name}{f' of {package}' if package else ''} {lacks(fault, who_needs(fault))}"


def remedies_of(finding: Finding) -> Iterator[Remedy]:
    """Releases that would do."""
    for each in finding.installs:
        line = next((line for line in finding.cure if each.package in line and "  # " in line), "")
        yield Remedy(package=each.package, specifier=each.specifier, version=each.version,
                     why=line.partition("  # ")[2] or None)


def avoid_of(finding: Finding, short: Short) -> Iterator[str]:
    """What helps: nothing that is to be run in the planned environment, which nobody has yet, but for a repair."""
    for line in finding.cure:
        if short.prefix not in line:
            yield line
        elif line.startswith("export "):
            yield clean(line.replace(short.sites[0], SITE), short)
    if finding.kind == "shadowed-library" and finding.repairable:
        yield "or run `stackfix repair` in the environment: from then on its own copy comes first"


def package_of(view: View, object_: LoadedObject | None) -> str | None:
    """"nvidia-nvjitlink-cu12 12.0.140"."""
    owners = view.owners(object_.path, object_.real_path) if object_ is not None else ()
    return f"{owners[0].name} {owners[0].version}" if owners else None


def clean(text: str, short: Short) -> str:
    """A sentence without the planned prefix, which nobody has."""
    for site in short.sites:
        text = text.replace(f"{site}/", "").replace(site, "site-packages")
    return visible(text.replace(f"{short.prefix}/", "").replace(short.prefix, "the environment"))


def visible(text: str) -> str:
    """Text of a wheel as it may be shown: a hostile name could hold an escape sequence, or bytes that are no text."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
