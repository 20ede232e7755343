"""What an environment has, as plain records. Paths are absolute and inside the root that was read; absent is None."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something that was met while reading and could not be used, or should be known."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Python:
    """The interpreter of an environment, as its files tell; it was not run."""

    minor: str                      # "3.11"
    version: str | None             # "3.11.7" where a file states it
    implementation: str             # "cpython", "pypy"
    free_threaded: bool             # lib/python3.13t
    executable: str | None          # bin/python as the environment names it, links not followed
    executable_reaches: str | None  # the file behind its links; None where they lead nowhere
    base_prefix: str                # of the Python that a venv was made from, else the prefix itself
    standard_library: str | None    # <base>/lib/python3.11, where it is there
    platform: str | None            # "linux-64", "linux-aarch64", "other-…"
    externally_managed: bool        # PEP 668: EXTERNALLY-MANAGED in the standard library, and no venv
    lost: str | None = None         # why no executable is there: "is a link to /x/python3.11, where nothing is"


@dataclass(frozen=True, slots=True, kw_only=True)
class Venv:
    """pyvenv.cfg."""

    config: str
    home: str | None                # folder of the base Python's executable
    system_site_packages: bool
    made_by: str | None             # "uv 0.5.9", "virtualenv 20.26.1"; the standard library signs nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class CondaPackage:
    """One conda-meta record, without its file list."""

    name: str
    version: str
    build: str
    channel: str | None             # without token and password
    subdir: str | None
    record: str                     # conda-meta/….json
    depends: tuple[str, ...]
    projects: tuple[str, ...]       # Python projects whose dist-info or egg-info it installed, normalised
    files: int                      # how many it installed


@dataclass(frozen=True, slots=True, kw_only=True)
class CondaPrefix:
    """conda's side of a prefix."""

    history: str | None             # conda-meta/history
    base: bool                      # the prefix that holds conda itself
    packages: tuple[CondaPackage, ...]
    variables: tuple[tuple[str, str], ...]  # set at activation by `conda env config vars`


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteFolder:
    """One folder that Python searches for packages. The order in Environment.sites is that of sys.path."""

    path: str
    kind: str                       # "PYTHONPATH", "environment", "user", "base", "pth"
    base: str                       # no file of its distributions may lie outside: <prefix> for <prefix>/lib/…
    exists: bool
    named_by: str | None = None     # the .pth file, for kind "pth"


@dataclass(frozen=True, slots=True, kw_only=True)
class PathFile:
    """A .pth file: folders it adds, and lines that Python would execute at start-up (they were not)."""

    path: str
    adds: tuple[str, ...]
    executes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """direct_url.json (PEP 610), without credentials."""

    url: str
    editable: bool
    commit: str | None              # of a VCS
    sha256: str | None              # of an archive


@dataclass(frozen=True, slots=True, kw_only=True)
class Editable:
    """An installation that leads to a source folder."""

    project: str | None             # normalised; None where no name is told
    how: str                        # "path" (.pth line), "finder" (an import hook), "egg-link", "direct-url"
    file: str                       # what says so
    targets: tuple[str, ...]        # source folders or files; empty where only running the hook would tell


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """One installed Python project, by its metadata folder."""

    name: str                       # normalised (PEP 503)
    spelling: str                   # as METADATA writes it
    version: str
    metadata: str                   # …/torch-2.3.1.dist-info
    site: str                       # the site folder that it lies in
    kind: str                       # "dist-info", "egg-info", "egg"
    requires: tuple[str, ...]       # Requires-Dist, as written
    requires_python: str | None
    extras: tuple[str, ...]
    tags: tuple[str, ...]           # WHEEL: "cp311-cp311-manylinux_2_28_x86_64"
    build: str | None
    generator: str | None
    installer: str | None           # "pip", "uv", "conda"
    requested: bool
    origin: Origin | None
    record: bool                    # has a RECORD
    manager: str                    # "pip" (any installer of wheels), "conda", "system" (the distribution's packages)
    conda_package: str | None       # of manager "conda": the package that installed it


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Owner:
    """Who installed a file."""

    manager: str                    # "pip" (any installer of wheels), "conda", "system" (the distribution's packages)
    name: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileClaim:
    """What one owner says of a file."""

    owner: Owner
    size: int | None
    sha256: str | None              # hexadecimal


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedFile:
    """A file that several owners claim. `same`: all state one content, as empty `nvidia/__init__.py` files do."""

    path: str
    claims: tuple[FileClaim, ...]
    same: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFault:
    """A file that is not as its owner installed it."""

    path: str                       # for "outside" of a linked folder the folder, once for each owner
    owner: Owner
    kind: str                       # "missing", "broken-link", "size", "hash", "outside", "no-file", "unreadable"
    expected: str | None            # size in bytes or sha256
    found: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedObject:
    """A shared object in a site folder or in conda's lib folder; what is inside the file was not read."""

    path: str
    size: int
    link: str | None                # target as the link states it; None for a file
    owners: tuple[Owner, ...]       # empty: no installer knows the file
    module: str | None              # "torchvision._C" where Python could import it by that name
    tag: str | None                 # "cpython-311-x86_64-linux-gnu", "abi3"


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryFolder:
    """A folder with libraries (`lib….so…`), from what lies on disk and not from a pattern of names."""

    path: str
    owners: tuple[Owner, ...]
    libraries: tuple[str, ...]      # file names, sorted


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivationScript:
    """A script that activation sources, with its lines that name loader, CUDA or Python variables."""

    path: str
    phase: str                      # "activate", "deactivate"
    lines: tuple[tuple[int, str], ...]  # number, text


@dataclass(frozen=True, slots=True, kw_only=True)
class JupyterKernel:
    """A kernel.json of the prefix or the user."""

    path: str
    name: str
    python: str | None              # argv[0]
    variables: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Copies:
    """Several installations of one project in one environment; the first is the one that Python imports."""

    project: str
    distributions: tuple[str, ...]      # metadata folders, in the order of sys.path
    conda_packages: tuple[str, ...]     # conda packages that also state the project


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """All that the files of one environment tell."""

    prefix: str
    found_via: str                  # "--prefix", "--python", "VIRTUAL_ENV", "CONDA_PREFIX", "running interpreter", …
    python: Python | None           # None: a conda prefix without Python
    venv: Venv | None
    conda: CondaPrefix | None
    sites: tuple[SiteFolder, ...]
    path_files: tuple[PathFile, ...]
    editables: tuple[Editable, ...]
    distributions: tuple[Distribution, ...]     # in the order of their sites, then by name
    copies: tuple[Copies, ...]
    shared_objects: tuple[SharedObject, ...]
    library_folders: tuple[LibraryFolder, ...]
    shared_files: tuple[SharedFile, ...]
    file_faults: tuple[FileFault, ...]
    activation: tuple[ActivationScript, ...]
    kernels: tuple[JupyterKernel, ...]
    notes: tuple[Note, ...]
    home: str | None = None         # HOME, which activation scripts speak of; it is in no report
