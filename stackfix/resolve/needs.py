"""What the solver moves about: a need (one requirement with its origin) and a candidate (one version that fits)."""

from __future__ import annotations

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from stackfix.matrix.records import Rule
from stackfix.quick import dataclass
from stackfix.resolve.records import Asked
from stackfix.sources.records import IndexFile


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidate:
    """One version with the files that fit the target. One object per version and target: compared by identity."""

    name: str
    extra: str | None               # the part of the project that one extra adds; None: the project itself
    version: Version
    text: str                       # the version as the files write it
    files: tuple[IndexFile, ...]    # best first
    known: bool = True              # False: a companion that the matrix has no row for
    direct: bool = False            # by URL: a flash-attn release wheel, or the user's own
    python: str | None = None       # of the target, where only an sdist fits: what a build says may depend on it

    @property
    def label(self) -> str:
        """`torch 2.3.1`."""
        return f"{self.name} {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FromUser:
    """The user asked."""

    asked: Asked
    place: str                      # for `requested_by`: "--with transformers", "requirements.in line 3"


@dataclass(frozen=True, slots=True, kw_only=True)
class FromStack:
    """The stack level was fixed before the closure is solved: torch, or what flash-attn is built with."""

    part: str                       # "torch" or "flash-attn"
    source: str                     # the matrix row's


@dataclass(frozen=True, slots=True, kw_only=True)
class FromFile:
    """Metadata of the file that the parent would be installed from."""

    parent: Candidate


@dataclass(frozen=True, slots=True, kw_only=True)
class FromRule:
    """A rule of the matrix about the parent, which no metadata states."""

    parent: Candidate
    rule: Rule


Origin = FromUser | FromStack | FromFile | FromRule


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Need:
    """One requirement on one project, or on the part of it that one extra adds. Compared by identity."""

    name: str
    extra: str | None
    specifier: SpecifierSet
    text: str                       # as it was written, for messages
    origin: Origin
    url: str | None = None          # a direct reference
    by_python: bool = False         # its marker asks for the Python version

    @property
    def key(self) -> str:
        """What the solver calls it: `jax`, `jax[cuda12]`."""
        return solver_key(self.name, self.extra)

    @property
    def parent(self) -> Candidate | None:
        return self.origin.parent if isinstance(self.origin, FromFile | FromRule) else None


def solver_key(name: str, extra: str | None) -> str:
    """`jax` or `jax[cuda12]`."""
    return name if extra is None else f"{name}[{extra}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion:
    """Why a version that the needs admit cannot be used."""

    version: str
    kind: str                       # "matrix" or "index"
    reason: str                     # plain words: "its only wheels are for Python 3.8 to 3.12"
    source: str
    rows: tuple[object, ...] = ()   # rows of the matrix behind it
    by_python: bool = False         # another Python could use it
    by_torch: bool = False          # another torch or CUDA could use it
    by_flash_attn: bool = False
    because: tuple[Need, ...] = ()  # needs that brought in what the version cannot share an environment with
