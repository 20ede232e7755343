"""A C or C++ library of the system that is older than what was built elsewhere needs."""

from __future__ import annotations

from collections.abc import Iterator

from stackfix.diagnose.faults import find_faults
from stackfix.diagnose.faults_records import SYSTEM_VERSIONS, Fault
from stackfix.diagnose.faults_text import requester_of, via_text, who_needs
from stackfix.diagnose.faults_verdict import Copy, has_all, own_files, search
from stackfix.diagnose.finding_records import Culprit, Finding
from stackfix.diagnose.install_lines import build_line, reinstall
from stackfix.diagnose.links_lost import lost_links
from stackfix.diagnose.make_finding import make_finding
from stackfix.diagnose.provenance import describe, owner_of, trace
from stackfix.diagnose.records import LoadedObject
from stackfix.diagnose.situation import Opening, View

OWN_FOLDER = ("mkdir -p {prefix}/lib/newer && ln -s ../libstdc++.so.6 ../libgcc_s.so.1 {prefix}/lib/newer/ && "
              "export LD_LIBRARY_PATH={prefix}/lib/newer${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}")


def check_system_libraries(view: View) -> Iterator[Finding]:
    """SF903 and SF904."""
    for fault in find_faults(view):
        if not fault.is_system or fault.category not in {"version", "symbol"} or link_is_lost(view, fault):
            continue
        if any(each.startswith("GLIBC_") for each in fault.versions):
            yield old_glibc(view, fault)
        elif fault.provider is not None:
            yield old_libstdcxx(view, fault, fault.provider)


def link_is_lost(view: View, fault: Fault) -> bool:
    """Whether a newer copy is there and only its soname's link is gone: SF801 says so."""
    return any(each.soname == fault.name and set(fault.versions) <= set(each.versions) for each in lost_links(view))


def severity_of(fault: Fault) -> str:
    """The import of a module that needs it surely fails."""
    return "note" if all(each.opening.may_fail is not None for each in fault.sightings) else "error"


def needs_text(fault: Fault) -> str:
    """What is asked for: versions, else symbols."""
    return ", ".join(fault.versions) or ", ".join(fault.symbols[:3])


def needs_lines(view: View, fault: Fault) -> Iterator[str]:
    """Who needs what."""
    for each in fault.requesters:
        wanted = [need.version for need in each.elf.needed_versions if need.version in fault.versions]
        yield f"{describe(view, each.path, each.real_path)} needs {', '.join(wanted) or needs_text(fault)}"
    yield from dict.fromkeys(f"seen at: {each.opening.what}" for each in fault.sightings[:4])


def newest(provider: LoadedObject) -> tuple[str, ...]:
    """The newest version of each kind that a library defines: "GLIBCXX_3.4.19"."""
    found = dict[str, tuple[tuple[int, ...], str]]()
    for each in provider.elf.defined_versions:
        prefix, _, number = each.partition("_")
        if f"{prefix}_" in SYSTEM_VERSIONS and all(part.isdecimal() for part in number.split(".")):
            found[prefix] = max(found.get(prefix, ((), "")), (tuple(map(int, number.split("."))), each))
    return tuple(name for _, name in found.values())


# --- libstdc++ ---


def old_libstdcxx(view: View, fault: Fault, provider: LoadedObject) -> Finding:
    """SF903. The first copy that is mapped serves the whole process, whatever the later ones could give."""
    able = newer_copy(view, fault, provider)
    cause = trace(view, provider, provider.path, provider.found_via)
    before = mapped_by(view, provider)
    inside = able is not None and view.is_inside(able.path)
    why = [f"{cause.how}."]
    if before is not None:
        opening, first = before
        if opening is not fault.opening and first is not None:
            why.append(f"It was mapped for {describe(view, first.path, first.real_path)} ({opening.what}), and the "
                       "first copy serves the whole process: in another order of imports it may work.")
    if able is not None:
        why.append(f"{able.path} is new enough, and comes too late.")
    return make_finding(
        "SF903", severity_of(fault), summary=f"{provider.path} is too old for {who_needs(fault)}: it has no "
        f"{needs_text(fault)}", why=" ".join(why),
        culprit=Culprit(path=provider.path, variable=cause.variable), requester=requester_of(view, fault),
        symbols=fault.symbols, error=fault.failure.message(), winner=provider.path,
        loser=able.path if able else None,
        evidence=(*needs_lines(view, fault),
                  f"taken: {describe(view, provider.path, provider.real_path)} via {via_text(provider.found_via)}",
                  f"its newest: {', '.join(newest(provider)) or 'it has no versions'}",
                  *((f"new enough: {describe(view, able.path, able.real_path)}",) if able else ()), *cause.lines),
        cure=(*cause.undo, *cures(view, inside=inside)),
        why_not=None if inside or cause.variable or view.environment.conda else
        "no newer libstdc++ is in the environment, and the system's is not touched")


def cures(view: View, *, inside: bool) -> Iterator[str]:
    """How a newer copy comes, and comes first."""
    prefix = view.environment.prefix
    if view.environment.conda is not None and not inside:
        yield f"conda install --prefix {prefix} -c conda-forge 'libstdcxx>=13'"
    if view.environment.conda is not None or inside:
        yield OWN_FOLDER.format(prefix=prefix)
    else:
        yield "upgrade the system's libstdc++, or use a system or container image that has a newer one"


def newer_copy(view: View, fault: Fault, provider: LoadedObject) -> Copy | None:
    """A copy that has all that is asked for: of the environment, else another that the search comes to."""
    looked = (*own_files(view, fault.name), *search(view, fault.name, fault.opening, fault.first.number))
    found = [each for each in looked
             if each.identity != provider.identity and has_all(view, each.path, fault)]
    return next(iter(found), None)


def mapped_by(view: View, provider: LoadedObject) -> tuple[Opening, LoadedObject | None] | None:
    """(import, library) for which a file was mapped first; None where the interpreter had it."""
    for opening in view.openings:
        state = opening.outcome.attempted
        for number in opening.outcome.loaded:
            if state.objects[number].identity == provider.identity:
                edge = next((each for each in opening.outcome.edges if each.provider == number), None)
                asking = edge.requester if edge is not None else None
                return opening, state.objects[asking] if asking is not None else None
    return None


# --- glibc ---


def old_glibc(view: View, fault: Fault) -> Finding:
    """SF904. Nothing in an environment can bring another glibc."""
    requester, glibc = fault.requester, view.machine.glibc
    owner = owner_of(view, requester.path, requester.real_path) if requester else None
    known = view.distributions.get(owner.name) if owner else None
    package = f"{owner.name} {owner.version}" if owner else None
    version = glibc.version if glibc and glibc.version else None
    here, system = f"glibc {version}" if version else fault.name, view.machine.release
    compiled = (build_line(view, known) if known else None) or "compile it on this system, or on an older one"
    again = (*((f"{reinstall(view, known)}  # the wheel that fits this system",) if known else ()), compiled)
    return make_finding(
        "SF904", severity_of(fault),
        summary=f"{here} is too old for {who_needs(fault)}, which needs {needs_text(fault)}",
        why="It was built on a newer system than this one. The tag of a wheel (manylinux_2_28: glibc 2.28) keeps pip "
            "from installing such a file, unless it was copied, built elsewhere, or installed for another platform.",
        culprit=Culprit(path=requester.path if requester else None, package=package),
        requester=requester_of(view, fault), symbols=fault.symbols, error=fault.failure.message(),
        evidence=(*needs_lines(view, fault),
                  *((f"{fault.provider.path}: newest {', '.join(newest(fault.provider))}",) if fault.provider else ()),
                  *((f"tags of {package}: {', '.join(known.tags)}",) if known and known.tags else ()),
                  *((f"system: {system.name}",) if system and system.name else ())),
        cure=(*again, "or use a system or container image with a newer glibc"),
        why_not=None if known else "no package is known that would bring another build of it")
