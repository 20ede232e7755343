"""One environment, by its files alone: nothing of it is imported, executed or written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from stackfix.errors import BadInput
from stackfix.inspect.conda import CondaContent, read_conda
from stackfix.inspect.environment_activation import read_activation, read_kernels
from stackfix.inspect.environment_editable import find_editables
from stackfix.inspect.environment_files import InstalledFiles, Progress
from stackfix.inspect.environment_find import Found, find_environment, must_be_readable
from stackfix.inspect.environment_objects import Searched, find_shared_objects, library_folders
from stackfix.inspect.environment_python import read_python, read_venv
from stackfix.inspect.environment_records import (
    CondaPrefix,
    Copies,
    Distribution,
    Editable,
    Environment,
    Note,
    Owner,
    PathFile,
    SiteFolder,
)
from stackfix.inspect.environment_sites import find_sites, read_path_files, why_left_out, with_path_files
from stackfix.inspect.places import Entry, Root, list_or_note, must_list
from stackfix.inspect.wheels import Row, read_distributions, read_record
from stackfix.quick import replace

WHEEL_INSTALLERS = frozenset({"pip", "uv", "poetry", "pdm", "pipx"})


def inspect_environment(root: Root, environ: Mapping[str, str], *, prefix: str | None = None, python: str | None = None,
                        running: str | None = None, deep: bool = False) -> Environment:
    """All that the files of an environment tell. `deep` hashes every file that has a hash.

    `prefix`, `python` and `running` (the prefix of the interpreter that asks) are absolute, inside the root. Raises
    BadInput where no environment is there; what is unreadable inside it becomes a note.
    """
    found = find_environment(root, environ, prefix=prefix, python=python, running=running)
    return inspect_installation(root, environ, found, deep=deep)[0]


def inspect_installation(root: Root, environ: Mapping[str, str], found: Found, *, cwd: str | None = None,
                         deep: bool = False, progress: Progress | None = None) -> tuple[Environment, InstalledFiles]:
    """The environment, and the owners of all its files, for those who ask about a path.

    `cwd`: where its Python would be started, None where that is not known.
    """
    notes: list[Note] = []
    conda = read_conda(root, found.prefix, notes)
    venv = read_venv(root, found.prefix)
    interpreter = read_python(root, found, venv, conda[0].packages if conda else (), notes)
    if interpreter is None and conda is None:
        must_be_readable(root, found.prefix)
        reason = notes[-1].reason if notes else "no lib/python3.*/site-packages in it"
        raise BadInput(found.prefix, f"which Python it is for cannot be told: {reason}")
    sites = find_sites(root, environ, found.prefix, interpreter, venv[0] if venv else None, cwd) if interpreter else ()
    if left_out := why_left_out(environ, cwd):
        notes.append(Note(path="PYTHONPATH", reason=left_out))
    path_files, sites, distributions, editables = read_sites(root, sites, notes)
    contents = conda[1] if conda else ()
    distributions = with_conda(root, found.prefix, distributions, contents)
    files = claim_files(root, found.prefix, sites, distributions, contents, notes)
    objects = find_shared_objects(files, searched(found.prefix, sites, conda[0] if conda else None), notes)
    judged = (found.prefix, *(each.base for each in sites))
    faults = files.faults(judged, notes, deep=deep, progress=progress)
    return Environment(
        prefix=found.prefix, found_via=found.found_via, python=interpreter, venv=venv[0] if venv else None,
        conda=conda[0] if conda else None, sites=sites, path_files=path_files, editables=editables,
        distributions=distributions, copies=find_copies(led_to(distributions, editables), contents),
        shared_objects=objects, library_folders=library_folders(objects), shared_files=files.shared(),
        file_faults=faults,
        activation=tuple(read_activation(root, found.prefix, notes)),
        kernels=tuple(read_kernels(root, found.prefix, environ, notes)), notes=tuple(notes),
        home=environ.get("HOME") or None,
    ), files


def read_sites(root: Root, sites: Sequence[SiteFolder], notes: list[Note]) -> tuple[
        tuple[PathFile, ...], tuple[SiteFolder, ...], tuple[Distribution, ...], tuple[Editable, ...]]:
    """.pth files, the sites with the folders that these add, and the projects and editables of all."""
    listed = {each.path: list_site(root, each, notes) for each in sites}
    path_files = [file for each in sites if each.kind != "PYTHONPATH"
                  for file in read_path_files(root, each.path, listed[each.path], notes)]
    complete = with_path_files(root, sites, path_files)
    listed |= {each.path: list_site(root, each, notes) for each in complete if each.path not in listed}
    distributions = [found for each in complete
                     for found in read_distributions(root, each.path, listed[each.path], notes)]
    editables = [found for each in complete
                 for found in find_editables(root, each.path, listed[each.path], path_files, distributions, notes)]
    return tuple(path_files), complete, tuple(distributions), tuple(editables)


def list_site(root: Root, site: SiteFolder, notes: list[Note]) -> tuple[Entry, ...]:
    """Names in a site folder. Raises Unreachable where the environment's own cannot be read; others become notes."""
    if site.kind == "environment":
        return must_list(root, site.path)
    entries, reason = list_or_note(root, site.path)
    if reason is not None:
        notes.append(Note(path=site.path, reason=reason))
    return entries


def with_conda(root: Root, prefix: str, distributions: Sequence[Distribution],
               contents: Sequence[CondaContent]) -> tuple[Distribution, ...]:
    """The projects, each with the conda package that installed it.

    pip over conda may reuse the very folder; then RECORD or METADATA has another size than conda's record says.
    """
    stated = {f"{prefix}/{file.path}": (each.package.name, file.size) for each in contents for file in each.files
              if file.path.endswith(("-info/RECORD", "-info/METADATA", "-info/PKG-INFO", ".egg-info"))}
    return tuple(replace(each, conda_package=owner, manager="conda" if owner else manager_of(each))
                 for each in distributions for owner in (conda_owner(root, each, stated),))


def manager_of(distribution: Distribution) -> str:
    """A distribution's packages lie in /usr/lib; pip may be forced to write there too, and then says so."""
    by_wheel = distribution.installer in WHEEL_INSTALLERS or not distribution.site.startswith("/usr/lib")
    return "pip" if by_wheel else "system"


def conda_owner(root: Root, distribution: Distribution, stated: Mapping[str, tuple[str, int | None]]) -> str | None:
    paths = [f"{distribution.metadata}/{name}" for name in ("RECORD", "METADATA", "PKG-INFO")] + [distribution.metadata]
    known = [(path, *stated[path]) for path in paths if path in stated]
    for path, _, size in known:
        status = root.status(path)
        if status is None or (size is not None and status.st_size != size):
            return None
    return known[0][1] if known else None


def claim_files(root: Root, prefix: str, sites: Sequence[SiteFolder], distributions: Sequence[Distribution],
                contents: Sequence[CondaContent], notes: list[Note]) -> InstalledFiles:
    """Every file that an installer recorded. What conda installed is judged by conda's record alone."""
    files = InstalledFiles(root)
    bases = {each.path: each.base for each in sites}
    for package in contents:
        files.add(package.owner, prefix, (prefix,), ((each.path, each.digest, each.size) for each in package.files))
    for each in distributions:
        if each.record and each.manager != "conda":
            owner = Owner(manager=each.manager, name=each.name, version=each.version)
            rows = read_record(root, each, notes)
            files.add(owner, each.site, (bases[each.site], each.site),
                      targeted(rows) if bases[each.site] == each.site else rows)
    return files


def targeted(rows: Iterable[Row]) -> Iterator[Row]:
    """Rows as `pip install --target` means them: it moves bin into the target and leaves RECORD as it was."""
    return ((path.removeprefix("../../") if path.startswith("../../bin/") else path, digest, size)
            for path, digest, size in rows)


def searched(prefix: str, sites: Sequence[SiteFolder], conda: CondaPrefix | None) -> Iterator[Searched]:
    """Folders whose shared objects count: sites, and conda's lib with what lies below it."""
    for each in sites:
        if each.exists:
            yield Searched(path=each.path, importable=True, source=each.kind in ("pth", "PYTHONPATH"))
    if conda is not None:
        yield Searched(path=f"{prefix}/lib", importable=False, source=False)


def led_to(distributions: Sequence[Distribution], editables: Sequence[Editable]) -> Iterator[Distribution]:
    """The projects without the egg-info that a build left in a source folder to which an editable one leads."""
    installed = {each.name for each in distributions if each.kind == "dist-info"}
    for each in distributions:
        leads = (path for editable in editables if editable.project in {each.name, None} for path in editable.targets)
        if not (each.kind == "egg-info" and each.name in installed
                and any(f"{each.site}/".startswith(f"{path.rstrip('/')}/") for path in leads)):
            yield each


def find_copies(distributions: Iterable[Distribution], contents: Sequence[CondaContent]) -> tuple[Copies, ...]:
    """Projects that are installed more than once: in two folders, or by conda and by pip."""
    found: dict[str, list[Distribution]] = {}
    for each in distributions:
        found.setdefault(each.name, []).append(each)
    stated: dict[str, list[str]] = {}
    for package in contents:
        for project in package.package.projects:
            stated.setdefault(project, []).append(package.package.name)
    return tuple(Copies(project=project, distributions=tuple(each.metadata for each in several),
                        conda_packages=tuple(stated.get(project, ())))
                 for project, several in sorted(found.items()) if are_copies(several, stated.get(project, ())))


def are_copies(several: Sequence[Distribution], conda_packages: Sequence[str]) -> bool:
    """Debian's own pairs of dist-info and egg-info are one installation."""
    managers = {each.manager for each in several}
    return (len(several) > 1 and managers != {"system"}) or (bool(conda_packages) and managers != {"conda"})
