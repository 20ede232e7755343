"""An environment's record as it would be: with new links and scripts, without what is set aside."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from stackfix.inspect.environment_records import (
    ActivationScript,
    Environment,
    LibraryFolder,
    Owner,
    SharedObject,
)
from stackfix.plan.effect_records import Linked
from stackfix.quick import replace

NO_USER_SITE, PYTHON_PATH = "PYTHONNOUSERSITE", "PYTHONPATH"


def with_links(environment: Environment, links: Sequence[Linked], owners: dict[str, tuple[Owner, ...]]) -> Environment:
    """Links are shared objects like others, and what was missing at their places is there again."""
    if not links:
        return environment
    paths = {each.path for each in links}
    made = [SharedObject(path=each.path, size=len(each.target), link=each.target, owners=owners.get(each.path, ()),
                         module=None, tag=None) for each in links]
    objects = sorted([*(each for each in environment.shared_objects if each.path not in paths), *made],
                     key=lambda each: each.path)
    return replace(environment, shared_objects=tuple(objects),
                   library_folders=tuple(folders_with(environment.library_folders, links)),
                   file_faults=tuple(each for each in environment.file_faults if each.path not in paths))


def folders_with(folders: Iterable[LibraryFolder], links: Sequence[Linked]) -> Iterator[LibraryFolder]:
    """Library folders with the names of links, by path."""
    new: dict[str, set[str]] = {}
    for link in links:
        folder, _, name = link.path.rpartition("/")
        new.setdefault(folder, set()).add(name)
    known = {each.path: each for each in folders}
    for path in sorted({*known, *new}):
        at = known.get(path) or LibraryFolder(path=path, owners=(), libraries=())
        yield replace(at, libraries=tuple(sorted({*at.libraries, *new.get(path, ())})))


def without(environment: Environment, gone: Collection[str]) -> Environment:
    """The record without files and folders that are set aside."""
    if not gone:
        return environment

    def stays(path: str) -> bool:
        return not any(path == each or path.startswith(f"{each}/") for each in gone)

    folders = (replace(each, libraries=tuple(name for name in each.libraries if stays(f"{each.path}/{name}")))
               for each in environment.library_folders if stays(each.path))
    distributions = tuple(each for each in environment.distributions if stays(each.metadata))
    return replace(
        environment, distributions=distributions,
        shared_objects=tuple(each for each in environment.shared_objects if stays(each.path)),
        library_folders=tuple(each for each in folders if each.libraries),
        copies=tuple(each for each in environment.copies
                     if sum(map(stays, each.distributions)) + len(each.conda_packages) > 1),
        activation=tuple(each for each in environment.activation if stays(each.path)),
        kernels=tuple(each for each in environment.kernels if stays(each.path)),
    )


def without_user_site(environment: Environment) -> Environment:
    """What Python sees where PYTHONNOUSERSITE is set: nothing of the user's own site folder."""
    return without_sites(environment, [each.path for each in environment.sites if each.kind == "user"])


def without_sites(environment: Environment, folders: Collection[str]) -> Environment:
    """What Python sees without some of its site folders."""
    left = without(environment, folders)
    return replace(left, sites=tuple(each for each in environment.sites if each.path not in folders))


def with_scripts(environment: Environment, scripts: Sequence[ActivationScript]) -> Environment:
    """Activation scripts that are written, in the order in which a shell sources them."""
    if not scripts:
        return environment
    paths = {each.path for each in scripts}
    kept = [each for each in environment.activation if each.path not in paths]
    return replace(environment, activation=tuple(sorted([*kept, *scripts], key=order)))


def with_kernels(environment: Environment, paths: Collection[str], variables: Mapping[str, str | None]) -> Environment:
    """Kernels that are started with these variables, too."""
    kernels = tuple(replace(each, variables=tuple(sorted({**dict(each.variables), **{
        name: value or "" for name, value in variables.items()}}.items()))) if each.path in paths else each
        for each in environment.kernels)
    return replace(environment, kernels=kernels)


def order(script: ActivationScript) -> tuple[bool, bool, str]:
    """As inspect.environment_activation reads them: conda's by name, then a venv's own."""
    of_conda = "/etc/conda/" in script.path
    return not of_conda, script.phase != "activate", posixpath.basename(script.path)
