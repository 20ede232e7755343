"""Which files of an environment belong to one installed release, by its RECORD and by what is really there."""

from __future__ import annotations

import csv
import posixpath
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from stackfix.apply.caches import caches_of
from stackfix.apply.errors import Drifted
from stackfix.apply.lock import STORE
from stackfix.apply.moves import remove
from stackfix.apply.nodes import walk
from stackfix.apply.tree import Tree, is_below, join, parts_of, split
from stackfix.errors import BadInput, Unreachable
from stackfix.plan.records import InstallWheel
from stackfix.sync.installed import headers

RECORD = "RECORD"


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One metadata folder."""

    project: str                    # normalised
    version: str
    info: str                       # …/torchaudio-2.3.1.dist-info, relative to the prefix


def normalised(name: str) -> str:
    """PEP 503."""
    return re.sub(r"[-_.]+", "-", name).lower()


def releases_in(tree: Tree, site: str) -> tuple[Release, ...]:
    """What is installed in a site folder, as the METADATA files say."""
    found = []
    for name in tree.names(site) if tree.is_folder(site) else ():
        if name.endswith(".dist-info") and tree.exists(join(site, name, "METADATA")):
            text = tree.read(join(site, name, "METADATA")).decode("utf-8", "replace")
            fields = headers(text)
            if "name" in fields and "version" in fields:
                found.append(Release(project=normalised(fields["name"]), version=fields["version"],
                                     info=join(site, name)))
    return tuple(found)


def recorded(tree: Tree, release: Release) -> tuple[str, ...]:
    """Paths of its RECORD, relative to the prefix, without rows that lead out or to our folder. Raises OSError."""
    site = split(release.info)[0]
    text = tree.read(join(release.info, RECORD)).decode("utf-8", "surrogateescape")
    return tuple(path for row in csv.reader(text.splitlines()) if row
                 and (path := inside(tree, site, row[0])) is not None)


def inside(tree: Tree, site: str, row: str) -> str | None:
    """The path that a row of a RECORD means; None where that is not in the prefix, or is in our own folder there."""
    if row.startswith("/"):
        if not row.startswith(f"{tree.prefix}/"):
            return None
        row = posixpath.relpath(row, posixpath.join(tree.prefix, site))
    path = posixpath.normpath(posixpath.join(site, row))
    try:
        if path in {"", "."} or not parts_of(path):
            return None
    except BadInput:
        return None
    return path if is_below(site, STORE) or not is_below(path, STORE) else None     # a stage lies there


def paths_to_set_aside(tree: Tree, step: InstallWheel, site: str, ours: frozenset[str]) -> tuple[str, ...]:
    """What goes when the releases go that the step replaces: whole folders where all in them is theirs, or `ours`.

    A file that another distribution records, too, stays. `ours`: what earlier repairs made, such as links to a library.
    Raises Drifted where the releases are others, BadInput for what cannot be taken out.
    """
    present = releases_in(tree, site)
    going = tuple(replaced(tree, present, step, site))
    return tuple(sorted(topmost(tree, site, owned_by(tree, present, going), ours)))


def owned_by(tree: Tree, present: Iterable[Release], going: Iterable[Release]) -> set[str]:
    """The files of some releases that are there, with their compiled forms, without those that others record, too."""
    shared = {path for release in present if release not in going and tree.exists(join(release.info, RECORD))
              for path in recorded(tree, release)}
    owned = set[str]()
    for release in going:
        listed = {path for path in recorded(tree, release) if path not in shared and is_file(tree, path)}
        owned |= listed | {cache for path in listed for cache in caches_of(tree, path)}
        owned |= {path for each in walk(tree, release.info) if each and is_file(tree, path := join(release.info, each))}
    return owned


def replaced(tree: Tree, present: tuple[Release, ...], step: InstallWheel, site: str) -> Iterator[Release]:
    """The releases that the step names. Raises Drifted where there are others, BadInput for one that must stay."""
    named = {(normalised(name), version) for name, _, version in (each.partition(" ") for each in step.replaces)}
    going = [each for each in present if each.project == step.project or (each.project, each.version) in named]
    found = {(each.project, each.version) for each in going}
    if found != named:
        raise Drifted(tree.prefix, ((site, f"has {words_of(found)}, and the plan replaces {words_of(named)}"),))
    for release in going:
        if not tree.exists(join(release.info, RECORD)):
            raise BadInput(f"{release.project} {release.version}", "has no RECORD: nobody can tell which files are its",
                           "reinstall it with the tool that installed it, then try again")
        if is_of_conda(tree, release):
            raise BadInput(f"{release.project} {release.version}", "was installed by conda",
                           "change it with conda, mamba or micromamba")
        yield release


def is_of_conda(tree: Tree, release: Release) -> bool:
    """Whether conda says that it has installed a release."""
    installer = join(release.info, "INSTALLER")
    return tree.exists(installer) and tree.read(installer).strip() == b"conda"


def words_of(releases: Iterable[tuple[str, str]]) -> str:
    return ", ".join(" ".join(each) for each in sorted(releases)) or "none"


def is_file(tree: Tree, path: str) -> bool:
    found = tree.status(path)
    return found is not None and not stat.S_ISDIR(found.st_mode)


def topmost(tree: Tree, site: str, owned: set[str], ours: frozenset[str]) -> Iterator[str]:
    """`owned`, with one folder below `site` in place of its files where nothing else is in it."""
    whole = dict[str, bool]()

    def is_whole(folder: str) -> bool:
        if folder not in whole:
            whole[folder] = all(path in owned or path in ours or (tree.is_folder(path) and is_whole(path))
                                for path in (join(folder, name) for name in tree.names(folder)))
        return whole[folder]

    seen = set[str]()
    for path in owned:
        top, folder = path, split(path)[0]
        while folder != site and is_below(folder, site) and is_whole(folder):
            top, folder = folder, split(folder)[0]
        if top not in seen:
            seen.add(top)
            yield top


def keep_recorded(tree: Tree, place: str, step: InstallWheel) -> None:
    """Removes what an installer left in the stage beside the release itself: uv's lock file. Raises Unreachable."""
    infos = [each for each in walk(tree, place) if each.endswith(".dist-info")]
    depth = min((each.count("/") for each in infos), default=0)     # deeper ones are bundled in a package
    sites = {split(each)[0] for each in infos if each.count("/") == depth}
    found = [release for site in sites for release in releases_in(tree, join(place, site))]
    versions = {step.version, step.version.partition("+")[0]}   # a file name's local version is not always METADATA's
    if len(found) != 1 or found[0].project != step.project or found[0].version not in versions:
        brought = words_of((each.project, each.version) for each in found)
        raise Unreachable(step.file, f"brought {brought}, not {step.project} {step.version}")
    site = sites.pop()
    if tree.resolve(site, last=True) != tree.resolve(step.site, last=True):
        raise Unreachable(step.file, f"would go to {site}, not to {step.site}",
                          "the installer and the environment do not agree where packages lie")
    listed = set(recorded(tree, found[0]))
    for path in [join(place, each) for each in walk(tree, place) if each]:
        if is_file(tree, path) and path not in listed:
            remove(tree, path)
