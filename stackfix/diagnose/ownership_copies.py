"""Projects that are installed twice: by two installers, in two folders, or in the user's own site folder first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stackfix.diagnose.families_parts import named
from stackfix.diagnose.finding_records import Culprit, Finding, Requester
from stackfix.diagnose.install_lines import reinstall, uninstall
from stackfix.diagnose.make_finding import make_finding
from stackfix.diagnose.ownership_facts import CHANGED, facts_of, is_shared_object, listed
from stackfix.diagnose.releases import release_of
from stackfix.diagnose.situation import View
from stackfix.inspect.environment_records import Copies, Distribution, Owner, SiteFolder

BEFORE = frozenset({"user", "PYTHONPATH"})
SHOWN = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Twice:
    """One project with all its installations; the first is the one that Python imports."""

    project: str
    owners: tuple[Owner, ...]
    distributions: tuple[Distribution, ...]
    sites: tuple[SiteFolder, ...]   # of the distributions
    level: str | None               # None: outside of the GPU stack

    @property
    def differ(self) -> bool:
        return len({release_of(each.version) for each in self.owners}) > 1

    @property
    def one_folder(self) -> bool:
        """Whether two installations share a site folder, or an installer wrote over what conda put there."""
        managers = {each.manager for each in self.owners}
        return len(set(self.sites)) < len(self.distributions) or ("conda" in managers and len(managers) > 1)

    @property
    def hides(self) -> bool:
        """Whether the user's own site folder, or one of PYTHONPATH, hides the environment's copy."""
        kinds = [each.kind for each in self.sites]
        return bool(kinds) and kinds[0] in BEFORE and any(kind in {"environment", "base"} for kind in kinds[1:])


def all_twice(view: View) -> Iterator[Twice]:
    facts = facts_of(view)
    by_metadata = {each.metadata: each for each in view.environment.distributions}
    sites = {each.path: each for each in view.environment.sites}
    for copies in view.environment.copies:
        found = tuple(by_metadata[each] for each in copies.distributions if each in by_metadata)
        yield Twice(project=copies.project, owners=facts.owners_of(copies), distributions=found,
                    sites=tuple(sites[each.site] for each in found if each.site in sites), level=level(view, copies))


def level(view: View, copies: Copies) -> str | None:
    owners = facts_of(view).owners_of(copies)
    return next(filter(None, map(facts_of(view).level, owners)), None)


def find_two_installations(view: View) -> Iterator[Finding]:
    """SF703: one finding for each project that two installers have in one place, one note for all others."""
    beside = []
    for each in all_twice(view):
        if each.hides:
            continue            # SF704
        if each.one_folder:
            yield describe_one_folder(view, each)
        else:
            beside.append(each)
    if beside:
        yield describe_beside(beside)


def describe_one_folder(view: View, twice: Twice) -> Finding:
    """Two installations in one place: their files are mixed, or the older ones are left over."""
    mixed = files_of_both(view, twice)
    severity = severity_of(view, twice, mixed)
    first, others = twice.owners[0], twice.owners[1:]
    return make_finding(
        "SF703", severity, level=twice.level or "environment",
        summary=f"{twice.project} is installed twice: {listed(twice.owners)}",
        why="Both put their files into the same folders, so what is imported is a mixture of the two, and removing "
            "or upgrading one takes files of the other." if mixed else
            "One has replaced the files of the other, which still counts as installed: its installer may put them "
            "back.",
        culprit=Culprit(path=twice.distributions[0].metadata if twice.distributions else None, package=named(others[0])
                        if others else named(first)),
        requester=Requester(package=named(first)),
        evidence=(*(f"metadata: {each.metadata} ({each.version}, installer {each.installer or 'unknown'})"
                    for each in twice.distributions),
                  *(f"conda-meta: {each.name} {each.version}" for each in twice.owners if each.manager == "conda"),
                  *(f"of both: {path}" for path in mixed[:SHOWN]),
                  *((f"and {len(mixed) - SHOWN} more",) if len(mixed) > SHOWN else ())),
        cure=cure_one_folder(view, twice),
        why_not="nothing is broken" if severity == "note" else None,
    )


def severity_of(view: View, twice: Twice, mixed: Sequence[str]) -> str:
    """Pip that upgrades itself over conda's is daily life; libraries of two versions in one folder are not."""
    if twice.level is not None:
        return "error" if twice.differ and mixed else "warning"
    owners = set(twice.owners)
    broken = any(each.owner == twice.owners[0] and each.kind in CHANGED for each in view.environment.file_faults)
    libraries = any(is_shared_object(path) for path in mixed)
    same_kind = len({each.manager for each in owners}) == 1
    return "warning" if (broken and libraries) or (same_kind and twice.differ and libraries) else "note"


def files_of_both(view: View, twice: Twice) -> tuple[str, ...]:
    """Paths that several of the installations claim with different content, or that only the hidden one has there."""
    owners = set(twice.owners)
    shared = [each.path for each in view.environment.shared_files
              if not each.same and len(owners & {claim.owner for claim in each.claims}) > 1]
    rest = owners - {twice.owners[0]}
    left = [each.path for each in view.environment.shared_objects if each.owners and set(each.owners) <= rest
            and any(each.path.startswith(f"{site.path}/") for site in twice.sites)]
    return (*shared, *left)


def cure_one_folder(view: View, twice: Twice) -> tuple[str, ...]:
    conda = [each for each in twice.owners if each.manager == "conda"]
    other = [each for each in twice.owners if each.manager != "conda"]
    if conda and other:
        return (f"{uninstall(view, other[0])} && {reinstall(view, conda[0])}  # keep conda's",
                f"{uninstall(view, conda[0])} && {reinstall(view, other[0])}  # or keep the other")
    return (f"{uninstall(view, twice.owners[0])}  # again, until no copy is found",
            f"{reinstall(view, twice.owners[0])}  # then")


def describe_beside(found: Sequence[Twice]) -> Finding:
    """Copies in different folders: the first is imported, as a venv with system packages wants it."""
    names = ", ".join(each.project for each in found)
    return make_finding(
        "SF703", "note", level="environment",
        summary=f"{len(found)} project{'' if len(found) == 1 else 's'} can be imported from several folders, and the "
                f"first one is: {names}",
        why="Python takes the first copy on sys.path as a whole, so copies in different folders do not mix.",
        culprit=Culprit(path=found[0].distributions[0].metadata),
        evidence=tuple(lines(found)), why_not="nothing is broken")


def lines(found: Sequence[Twice]) -> Iterator[str]:
    for each in found[:SHOWN]:
        taken, *hidden = each.distributions
        yield f"{each.project}: {taken.version} in {taken.site} hides " + ", ".join(
            f"{other.version} in {other.site}" for other in hidden)
    if len(found) > SHOWN:
        yield f"and {len(found) - SHOWN} more"


def find_user_site_first(view: View) -> Iterator[Finding]:
    """SF704: one finding for what belongs to the GPU stack, one note for the rest."""
    hidden = [each for each in all_twice(view) if each.hides]
    stack = [each for each in hidden if each.level is not None]
    rest = [each for each in hidden if each.level is None]
    for group in (stack, rest):
        if group:
            yield describe_hidden(view, group)


def describe_hidden(view: View, found: Sequence[Twice]) -> Finding:
    """The environment's own copies are hidden by those of one or more folders before it."""
    first = next((each for each in found if each.differ), found[0])
    site = first.sites[0]
    severity = hidden_severity(view, first)
    variable = "PYTHONPATH" if site.kind == "PYTHONPATH" else None
    return make_finding(
        "SF704", severity, level=first.level or "environment",
        summary=f"{', '.join(f'{each.project} {each.distributions[0].version}' for each in found)} "
                f"{'is' if len(found) == 1 else 'are'} imported from {site.path}, not from the environment",
        why=("PYTHONPATH" if variable else "The user's own site folder")
            + " comes before the environment on sys.path, so each package found there hides the environment's, while "
              "the packages that were installed to go with the latter stay.",
        culprit=Culprit(path=first.distributions[0].metadata, package=named(first.owners[0]), variable=variable),
        requester=Requester(package=named(first.owners[1]) if len(first.owners) > 1 else None,
                            path=first.distributions[1].metadata),
        evidence=tuple(lines(found)), winner=first.distributions[0].metadata, loser=first.distributions[1].metadata,
        cure=(f"take {site.path} out of PYTHONPATH" if variable else
              "export PYTHONNOUSERSITE=1  # and the environment's own copies are imported",
              f"{uninstall(view, first.owners[0])}  # or so: remove the copy there"),
        why_not="nothing is broken" if severity == "note" else None,
    )


def hidden_severity(view: View, twice: Twice) -> str:
    """A system's Python is meant to let the user's folder come first; an environment is meant to stand alone."""
    meant = view.environment.conda is None and view.environment.venv is None and twice.sites[0].kind == "user"
    return "warning" if twice.level is not None and twice.differ and not meant else "note"
