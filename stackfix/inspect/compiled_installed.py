"""The compiled files of an installed package, and as much of its environment as the question needs."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from stackfix.abi.records import Compiled
from stackfix.errors import BadInput
from stackfix.inspect.compiled import read_places
from stackfix.inspect.conda import CondaContent, read_conda
from stackfix.inspect.environment import read_sites, targeted, with_conda
from stackfix.inspect.environment_files import InstalledFiles
from stackfix.inspect.environment_find import Found
from stackfix.inspect.environment_judge import is_below
from stackfix.inspect.environment_objects import Searched, find_shared_objects, is_shared_object
from stackfix.inspect.environment_python import read_python, read_venv
from stackfix.inspect.environment_records import Distribution, Editable, Note, Python, SiteFolder
from stackfix.inspect.environment_sites import find_sites
from stackfix.inspect.places import Root
from stackfix.inspect.wheels import Row, normalised, read_record

MOST_NEAR = 3               # names that are offered for one that nobody installed


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """What is installed in an environment, as its metadata tell; none of its files was looked at."""

    root: Root
    prefix: str
    found_via: str
    python: Python | None
    sites: tuple[SiteFolder, ...]
    distributions: tuple[Distribution, ...]     # in the order of their sites
    editables: tuple[Editable, ...]
    conda: tuple[CondaContent, ...]

    def find(self, name: str) -> Distribution | None:
        """The copy of a project that Python imports. `name` is normalised."""
        return next((each for each in self.distributions if each.name == name), None)


def read_installation(root: Root, environ: Mapping[str, str], found: Found, notes: list[Note], *,
                      cwd: str | None = None) -> Installation:
    """What is installed. Raises Unreachable where the environment's own folders cannot be listed."""
    conda = read_conda(root, found.prefix, notes)
    contents = conda[1] if conda else ()
    venv = read_venv(root, found.prefix)
    python = read_python(root, found, venv, conda[0].packages if conda else (), notes)
    sites = find_sites(root, environ, found.prefix, python, venv[0] if venv else None, cwd) if python else ()
    _, sites, distributions, editables = read_sites(root, sites, notes)
    return Installation(
        root=root, prefix=found.prefix, found_via=found.found_via, python=python, sites=sites, conda=contents,
        distributions=with_conda(root, found.prefix, distributions, contents), editables=editables)


def read_installed(named: str, installation: Installation, notes: list[Note]) -> Compiled:
    """The compiled files of an installed package. Raises BadInput where there is none of that name."""
    name = normalised(named)
    distribution = installation.find(name)
    package = next((each for each in installation.conda if each.package.name == name), None)
    if distribution is None and package is None:
        raise not_installed(named, installation)
    paths = dict.fromkeys(path for path in (
        *(conda_files(installation, package) if package else ()),
        *(files_of(installation, distribution, notes) if distribution else ())))
    places = {shown_as(path, installation): path for path in paths}
    read, unreadable = read_places(places, installation.root)
    url = distribution.origin.url if distribution and distribution.origin else ""
    file = url.rpartition("/")[2]
    version = distribution.version if distribution else package.package.version if package else None
    return Compiled(
        name=name, version=version, origin="installed", source=named, tags=distribution.tags if distribution else (),
        requires=distribution.requires if distribution else (), file_name=file if file.endswith(".whl") else None,
        files=tuple(read), unreadable=tuple(unreadable))


def not_installed(named: str, installation: Installation) -> BadInput:
    """The error, with the names that are nearest."""
    import difflib

    known = {each.name for each in installation.distributions} | {each.package.name for each in installation.conda}
    near = difflib.get_close_matches(normalised(named), sorted(known), MOST_NEAR, 0.6)
    hint = f"did you mean {', '.join(near)}?" if near else \
        "name a file (./NAME.so), a wheel (NAME.whl) or an installed package; --prefix DIR names the environment"
    return BadInput(named, f"is no file here, and no package of that name is installed in {installation.prefix}", hint)


def files_of(installation: Installation, distribution: Distribution, notes: list[Note]) -> Iterator[str]:
    """Paths of the shared objects of a project: of its RECORD, and of the source folder of an editable one."""
    if distribution.record:
        yield from recorded(installation, distribution, notes)
    targets = [path for each in installation.editables if each.project == distribution.name for path in each.targets]
    folders = [path for path in dict.fromkeys(targets) if installation.root.is_folder(path)]
    if not folders and not distribution.record:
        folders = own_folders(installation, distribution)
    searched = [Searched(path=each, importable=True, source=True) for each in folders]
    for each in find_shared_objects(InstalledFiles(installation.root), searched, notes) if searched else ():
        yield each.path


def recorded(installation: Installation, distribution: Distribution, notes: list[Note]) -> Iterator[str]:
    """Shared objects in RECORD. A row that leaves the prefix is a note, and is not looked at."""
    site = next((each for each in installation.sites if each.path == distribution.site), None)
    base = site.base if site else distribution.site
    rows = list[Row](read_record(installation.root, distribution, notes))
    for path, _, _ in targeted(rows) if base == distribution.site else rows:
        if is_shared_object(path.rpartition("/")[2]):
            whole = posixpath.normpath(posixpath.join(distribution.site, path))
            if is_below(whole, (base, distribution.site)):
                yield whole
            else:
                notes.append(Note(path=f"{distribution.metadata}/RECORD", reason=f"leaves the prefix: {path}"))


def own_folders(installation: Installation, distribution: Distribution) -> list[str]:
    """Folders of a project without a RECORD: those that its top_level.txt names, else the one of its name."""
    text = installation.root.find_text(f"{distribution.metadata}/top_level.txt") or distribution.name.replace("-", "_")
    names = [each.strip() for each in text.split() if each.strip().isidentifier()]
    found = [f"{distribution.site}/{name}" for name in names]
    return [each for each in found if installation.root.is_folder(each)]


def conda_files(installation: Installation, package: CondaContent) -> Iterator[str]:
    """Shared objects that a conda package installed."""
    for each in package.files:
        path = posixpath.normpath(posixpath.join(installation.prefix, each.path))
        if is_shared_object(path.rpartition("/")[2]) and is_below(path, (installation.prefix,)):
            yield path


def shown_as(path: str, installation: Installation) -> str:
    """The path from its site folder on, else from the prefix on."""
    folders = [each.path for each in installation.sites] + [installation.prefix]
    start = next((each for each in folders if path.startswith(f"{each.rstrip('/')}/")), None)
    return path if start is None else path[len(start.rstrip("/")) + 1:]


__all__ = ["Installation", "read_installation", "read_installed"]
