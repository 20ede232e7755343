"""What the network said, as records. Nothing here opens a connection."""

from __future__ import annotations

from stackfix.quick import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexFile:
    """One file of a project page (PEP 691 or PEP 503)."""

    project: str                    # normalised name
    filename: str
    version: str                    # as written in the file name, not normalised
    url: str                        # absolute, without fragment and without credentials
    sha256: str | None              # None: the page states none; such a file is never pinned
    requires_python: str | None
    yanked: str | None              # reason ("" when none is given); None when not yanked
    size: int | None
    upload_time: str | None         # ISO 8601, as stated
    core_metadata: str | bool | None  # sha256 of the metadata, True (advertised without hash), None (not advertised)
    index: str                      # base address of the index it came from, without credentials
    torch_path: str | None = None   # "cu118": of a file of the torch index, whose `url` is its official address

    @property
    def is_wheel(self) -> bool:
        return self.filename.endswith(".whl")


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreMetadata:
    """What a resolver needs of a METADATA file. `requires_dist` are raw PEP 508 lines in file order."""

    name: str                       # normalised
    version: str
    requires_dist: tuple[str, ...]
    requires_python: str | None
    provides_extra: tuple[str, ...]
    basis: str                      # "advertised" (hash checked), "unadvertised", "range", "file", "sdist", "built"
    built_on: str | None = None     # "linux-64": the machine whose build told it


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseAsset:
    """One file of a release on the flash-attn release source."""

    version: str                    # of the release, without "v"
    file: str
    url: str                        # where it can be downloaded from, here
    sha256: str | None              # the API's digest, or of the file in a local folder; None: not stated
    size: int | None
    updated_at: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexPin:
    """One entry of [tool.uv.sources]: where a project comes from, and under which condition."""

    project: str                    # normalised name
    name: str                       # of the index; "git", "url", "path" or "workspace" where it is none
    url: str | None = field(repr=False)  # base address of the index, may hold credentials; None: no index
    marker: str | None              # environment marker under which it holds
    condition: str | None           # "extra cpu", "group dev": holds where that is installed
    origin: str                     # "pyproject.toml [tool.uv]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """The only indexes that a project is looked up on, in this order; none: it comes from no index."""

    project: str
    indexes: tuple[str, ...] = field(repr=False)    # base addresses, may hold credentials
    why: str                        # "pyproject.toml [tool.uv] pins it to pytorch-cu128"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexPolicy:
    """What is said of one index beside its address."""

    base: str                       # without credentials
    origin: str
    authenticate: str = "auto"      # "always": never ask without a login; "never": never with one
    passed_over: tuple[int, ...] = ()               # statuses that mean that it has not got the project


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadLimit:
    """From when on files of one project or one index are too new."""

    moment: str | None              # "2026-01-31T00:00:00Z"; None: no limit
    origin: str                     # where it was set
    written: str                    # as it was written
    relative: bool = False          # so long before now: tomorrow it is another moment
    project: str | None = None      # normalised; None: any
    index: str | None = None        # base address without credentials; None: any


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedBySettings:
    """A requirement that limits and adds nothing, from the settings of the project."""

    text: str                       # PEP 508
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSettings:
    """Where to look, from options, then uv's and pip's settings, then pip's own default. First index wins."""

    indexes: tuple[str, ...]        # base addresses in order of priority; may hold credentials, never shown or written
    origin: tuple[str, ...]         # where each was set: "--index-url", "PIP_INDEX_URL", "pip.conf", "pip's default"
    ignored: tuple[str, ...]        # settings of this machine alone that steer no lock, for a note on stderr
    cert: str | None                # CA bundle
    proxies: tuple[tuple[str, str], ...]  # scheme -> address
    no_proxy: str | None
    timeout: float                  # seconds, per read
    retries: int
    netrc: tuple[tuple[str, str, str], ...] = field(default=(), repr=False)  # (host, user, password)
    release_token: str | None = field(default=None, repr=False)  # for the release API alone
    pins: tuple[IndexPin, ...] = ()
    routes: tuple[Route, ...] = ()  # of projects that are pinned; all others are looked up on `indexes`
    policies: tuple[IndexPolicy, ...] = ()
    client_cert: str | None = None  # PEM file that tells servers of the indexes, and no others, who we are
    keyring: str | None = None      # "uv", "pip": whose settings let the program `keyring` be asked for passwords
    uploaded_before: tuple[UploadLimit, ...] = ()   # the first that fits a file counts
    constraints: tuple[AskedBySettings, ...] = ()
    notes: tuple[str, ...] = ()     # settings that a user would expect to count and that do not, for the lock's notes


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """One answer that was used, and until when it may be used again without asking (0: it has to be asked for)."""

    url: str                        # without credentials
    status: int
    until: float                    # seconds since the epoch
    etag: str | None = None
    packed: str | None = None       # sha256 of the body as it was sent; None: not known
    entry: str | None = None        # file in the cache that holds it
    accept: str = "*/*"
    final: str | None = None        # where it came from in the end; None: nothing was answered from there
    kind: str = ""                  # Content-Type
