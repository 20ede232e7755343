"""Libraries of the environment that are older, or newer, than their consumers need, whatever metadata allows."""

from __future__ import annotations

from collections.abc import Iterator

from stackfix.diagnose.faults_records import Fault
from stackfix.diagnose.faults_text import (
    capital,
    file_name,
    found_line,
    lacks,
    level_of,
    needs_lines,
    offer_text,
    placed,
    requester_of,
    who_needs,
)
from stackfix.diagnose.faults_verdict import Copy, Verdict, verdicts
from stackfix.diagnose.finding_records import Culprit, Finding
from stackfix.diagnose.install_lines import install_line, reinstall, update_line
from stackfix.diagnose.library_needs import Need, askers, bounded, find_needs, known_good
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
        cure=cures(view, fault, owner, need, copy),
        why_not=None if owner else "no package of the environment has the file",
    )


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
        yield from dict.fromkeys(askers(view, owner))


def cures(view: View, fault: Fault, owner: Owner | None, need: Need | None, copy: Copy) -> tuple[str, ...]:
    """Commands that bring the library to the needed version."""
    if owner is None:
        return (f"replace {copy.path} by a version that has the symbols; no package of the environment owns it",)
    if need is None:
        return (reinstall(view, owner) if fault_of_file(view, copy) else update_line(view, owner),)
    known = known_good(view, fault, owner, need)
    specifier = f"=={known.version}" if known else bounded(owner, need.specifier)
    against = [line for line in askers(view, owner) if refuses(line, owner, need)]
    return (install_line(view, owner, f"{owner.name}{specifier}") + (f"  # {known.why}" if known else ""),
            *(f"pip will warn that {each}" for each in dict.fromkeys(against)))


def refuses(line: str, owner: Owner, need: Need) -> bool:
    """Whether a requirement admits what is installed and not what is needed."""
    specifier = line.partition(f"requires {owner.name}")[2]
    if "=" not in specifier:
        return False
    least = need.specifier.lstrip("<>=~!").partition(",")[0].removesuffix(".*")
    return admits(specifier, owner.version) and not admits(specifier, least)


def fault_of_file(view: View, copy: Copy) -> FileFault | None:
    """What is known to be wrong with the file itself."""
    return next((each for each in view.environment.file_faults
                 if each.path in {copy.path, copy.real_path} and each.kind in {"size", "hash"}), None)
