"""Libraries of the environment that are older, or newer, than their consumers need, whatever metadata allows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stackfix.diagnose.faults_records import Fault
from stackfix.diagnose.faults_text import (
    capital,
    file_name,
    found_line,
    lacks,
    level_of,
    limited,
    needs_lines,
    offer_text,
    placed,
    requester_of,
    who_needs,
)
from stackfix.diagnose.faults_verdict import Copy, Verdict, verdicts
from stackfix.diagnose.finding_records import Culprit, Finding, Install
from stackfix.diagnose.install_lines import install_line, reinstall, update_line
from stackfix.diagnose.library_choice import bounded, known_good
from stackfix.diagnose.library_needs import Need, askers, find_needs
from stackfix.diagnose.library_symbols import contradiction, demand_of_all, specifier_of
from stackfix.diagnose.make_finding import make_finding
from stackfix.diagnose.missing_carriers import gone_files
from stackfix.diagnose.missing_foreign import stand_in
from stackfix.diagnose.provenance import named, owner_of
from stackfix.diagnose.releases import admits
from stackfix.diagnose.situation import View
from stackfix.inspect.environment_records import FileFault, Owner


def find_library_versions(view: View) -> Iterator[Finding]:
    """SF201 and SF202: the regular copy lacks what is needed."""
    for verdict in verdicts(view):
        if verdict.fault.category != "bad" and (verdict.kind in {"own", "both"} or is_meant(view, verdict)):
            yield unfit(view, verdict)


def is_meant(view: View, verdict: Verdict) -> bool:
    """Whether a library outside of the environment is what the requester is meant to take."""
    fault = verdict.fault
    return verdict.kind == "foreign" and not gone_files(view, fault.name) and stand_in(
        view, fault.name, fault.requester, fault.opening) is None


def unfit(view: View, verdict: Verdict) -> Finding:
    """The finding of one library."""
    fault, copy = verdict.fault, verdict.regular or verdict.winner
    owner = owner_of(view, copy.path, copy.real_path)
    needs = list(find_needs(view, fault, owner)) if owner else []
    changed = fault_of_file(view, copy)
    if changed is not None:             # the version is that of the file which is not there: it tells nothing
        needs = [each for each in needs if not each.too_new]
    need = needs[0] if needs else None
    install = choose(view, fault, owner, need) if owner and need else None
    what = f"{owner.name} {owner.version}" if owner else placed(view, copy.path)
    too_new = need is not None and need.too_new
    verdict_text = f"is too {'new' if too_new else 'old'} for" if need else "does not have what is needed by"
    consumer = requester_of(view, fault)
    who = (consumer.package if consumer else None) or who_needs(fault)
    return make_finding(
        "SF202" if too_new else "SF201", fault.severity, level=level_of(fault),
        summary=f"{what} {verdict_text} {who}: {f'{file_name(copy.path)} ' if owner else 'it '}{lacks(fault)}"
        if need is not None or changed is None else
        f"{file_name(copy.path)} is not the file of {what}, and {lacks(fault, who)}",
        why=why(view, verdict, need, owner, changed),
        culprit=Culprit(path=copy.path, package=named(owner)), requester=consumer, symbols=fault.symbols,
        evidence=tuple(evidence(view, verdict, copy, owner, needs)), error=fault.failure.message(),
        cure=cures(view, owner, copy, install), installs=(install.record,) if install else (),
        why_not="no package of the environment has the file" if owner is None else why_outside(view, fault, copy),
    )


def why_outside(view: View, fault: Fault, copy: Copy) -> str | None:
    """Where neither the library nor what needs it is in the prefix: another release there would not be looked at."""
    asks = fault.requester.path if fault.requester is not None else copy.path
    return None if view.is_inside(copy.path) or view.is_inside(asks) else f"{copy.path} lies outside of the environment"


def why(view: View, verdict: Verdict, need: Need | None, owner: Owner | None, changed: FileFault | None) -> str:
    """What is needed, and why nobody noticed."""
    if need is not None:
        told = f"{need.why} ({need.source})."
        if not need.source.startswith("the metadata"):
            told += " No package's metadata states it, so pip check is content."
        return capital(told)
    if changed is not None and owner is not None:
        return (f"The file is not as {owner.name} {owner.version} installed it ({changed.kind}: {changed.found} "
                f"instead of {changed.expected}): another package, or a person, has replaced it.")
    offers = offer_text(view, verdict)
    return capital(f"{offers or 'which version has them, neither the matrix nor the metadata of the packages tells'}.")


def evidence(view: View, verdict: Verdict, copy: Copy, owner: Owner | None, needs: list[Need]) -> Iterator[str]:
    """Who needs it, what is there, what is required of it."""
    yield from needs_lines(view, verdict.fault)
    yield found_line(view, copy, "found")
    offers = offer_text(view, verdict)
    if offers is not None:
        yield offers
    yield from dict.fromkeys(f"{each.source}: {each.why}" for each in needs)
    if owner is not None:
        yield from demanded(view, verdict.fault, owner)
        yield from dict.fromkeys(askers(view, owner))


def demanded(view: View, fault: Fault, owner: Owner) -> Iterator[str]:
    """Which versions have all that any file of the environment asks of the library."""
    everyone = demand_of_all(view, fault, owner)
    if everyone is not None and not everyone.bounds.versions:
        yield contradiction(everyone)
    elif everyone is not None and specifier_of(everyone.bounds):
        yield (f"{everyone.bounds.package}{specifier_of(everyone.bounds)} has all that is asked of it, by "
               f"{limited([who for who, names in everyone.by.items() if names])}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What to install, and why in that release."""

    record: Install
    why: str | None


def choose(view: View, fault: Fault, owner: Owner, need: Need) -> Choice:
    """The version that cures the finding, and what would mind it; of conda a range: a channel may have others."""
    known = known_good(view, fault, owner, need) if owner.manager != "conda" else None
    specifier = need.specifier if known else bounded(owner, range_for_all(view, fault, owner) or need.specifier)
    version = known.version if known else specifier.lstrip("<>=~!").partition(",")[0].removesuffix(".*")
    against = dict.fromkeys(line for line in askers(view, owner) if refuses(line, owner, version))
    return Choice(why=known.why if known else None, record=Install(
        package=owner.name, manager=owner.manager, specifier=specifier, version=known.version if known else None,
        breaks=tuple(against)))


def range_for_all(view: View, fault: Fault, owner: Owner) -> str | None:
    """The versions that have all that any file of the environment asks of the library, where the almanac tells."""
    everyone = demand_of_all(view, fault, owner)
    return specifier_of(everyone.bounds) or None if everyone is not None and everyone.bounds.versions else None


def cures(view: View, owner: Owner | None, copy: Copy, install: Choice | None) -> tuple[str, ...]:
    """Commands that bring the library to the needed version."""
    if owner is None:
        return (f"replace {copy.path} by a version that has the symbols; no package of the environment owns it",)
    if install is None:
        return (reinstall(view, owner) if fault_of_file(view, copy) else update_line(view, owner),)
    record = install.record
    specifier = f"=={record.version}" if record.version else record.specifier
    return (install_line(view, owner, f"{owner.name}{specifier}") + (f"  # {install.why}" if install.why else ""),
            *(f"pip will warn that {each}" for each in record.breaks))


def refuses(line: str, owner: Owner, version: str) -> bool:
    """Whether a requirement admits what is installed and not what is to be."""
    specifier = line.partition(f"requires {owner.name}")[2]
    return "=" in specifier and admits(specifier, owner.version) and not admits(specifier, version)


def fault_of_file(view: View, copy: Copy) -> FileFault | None:
    """What is known to be wrong with the file itself."""
    return next((each for each in view.environment.file_faults
                 if each.path in {copy.path, copy.real_path} and each.kind in {"size", "hash"}), None)
