"""Books of an almanac that a test writes: which torch minors have a name, which versions of NVIDIA's wheels do.

`books({"_ZN3c104cuda9SetDeviceEi": "2.1-2.2"})` knows one name of torch, no library and no wheel.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from stackfix.abi.judged import ReadWheels
from stackfix.abi.mangled import neutral
from stackfix.abi.nvidia_bounds import bounds_in, since_in
from stackfix.abi.nvidia_text import Exports
from stackfix.abi.nvidia_versions import mask_of
from stackfix.abi.records import (
    Asking,
    BookRelease,
    Books,
    Bounds,
    JudgedWheel,
    LibraryUse,
    PatchException,
    Provision,
    Since,
)

MINORS = ("1.13", "2.0", "2.1", "2.2", "2.3", "2.4", "2.5", "2.6", "2.7", "2.8", "2.9", "2.10", "2.11", "2.12", "2.13",
          "2.14", "2.15")
NEW_STRING_SINCE = "2.7"


def release(minor: str, *patches: str) -> BookRelease:
    """A minor whose newest patch is .1."""
    new = MINORS.index(minor) >= MINORS.index(NEW_STRING_SINCE)
    return BookRelease(minor=minor, version=f"{minor}.1", file=f"torch-{minor}.1-cp311-cp311-manylinux1_x86_64.whl",
                       sha256="0" * 64, string_abi="new" if new else "old", patches=patches)


@dataclass(frozen=True)
class FakeTorchBook:
    """Fills records.TorchBook. Spans are "2.1-2.2", "2.8-" or "-2.1"; "-" is every minor, "none" none."""

    spans: Mapping[str, str] = field(default_factory=dict)
    cuda: Collection[str] = ()                              # names that libc10_cuda.so has
    lacking: Mapping[str, tuple[str, ...]] = field(default_factory=dict)     # names that a patch release lacks
    having: Mapping[str, tuple[str, ...]] = field(default_factory=dict)      # and those that it alone has

    @property
    def releases(self) -> tuple[BookRelease, ...]:
        patches = tuple(dict.fromkeys((*self.lacking, *self.having)))
        return tuple(release(each, *(patch for patch in patches if patch.rpartition(".")[0] == each))
                     for each in MINORS)

    def minors(self, name: str) -> tuple[str, ...]:
        known = {neutral(each): span for each, span in self.spans.items()}
        span = known.get(neutral(name), "none")
        if span == "none":
            return ()
        first, _, last = span.partition("-")
        return MINORS[MINORS.index(first or MINORS[0]):MINORS.index(last or MINORS[-1]) + 1]

    def libraries(self, name: str) -> tuple[str, ...]:
        return ("libc10_cuda.so",) if name in self.cuda else ("libc10.so",) if self.minors(name) else ()

    def exceptions(self, version: str) -> tuple[PatchException, ...]:
        return tuple(PatchException(version=version, key=neutral(each), exported=exported)
                     for told, exported in ((self.lacking, False), (self.having, True))
                     for each in told.get(version, ()))


@dataclass(frozen=True)
class FakeNvidiaBook:
    """Fills records.NvidiaBook: by soname the package, its versions, and in which of them a name is ("12.4-")."""

    libraries: Mapping[str, tuple[str, tuple[str, ...], Mapping[str, str]]] = field(default_factory=dict)

    def packages(self, soname: str) -> tuple[str, ...]:
        return (self.libraries[soname][0],) if soname in self.libraries else ()

    def versions(self, package: str) -> tuple[str, ...]:
        return next((versions for name, versions, _ in self.libraries.values() if name == package), ())

    def exports(self, soname: str) -> Exports:
        _, versions, names = self.libraries[soname]
        places = {version: place for place, version in enumerate(versions)}
        return Exports(versions=versions, masks={name: mask_of(span, places) for name, span in names.items()})

    def since(self, soname: str, name: str) -> tuple[Since, ...]:
        return tuple(since for package in self.packages(soname)
                     for since in since_in(package, soname, name, self.exports(soname)))

    def bounds(self, soname: str, names: Collection[str]) -> tuple[Bounds, ...]:
        return tuple(bounds_in(package, soname, sorted(names), self.exports(soname), self.versions(package))
                     for package in self.packages(soname))

    def exported(self, package: str, version: str, soname: str) -> Collection[str] | None:
        raise AssertionError(package)

    def provides(self, package: str, version: str, soname: str, names: Collection[str]) -> Provision:
        raise AssertionError(package)

    @property
    def sonames(self) -> tuple[str, ...]:
        raise AssertionError

    def asking(self, soname: str, name: str) -> tuple[Asking, ...]:
        raise AssertionError(soname, name)

    def consumer_versions(self, consumer: str) -> tuple[str, ...]:
        raise AssertionError(consumer)

    def uses(self, consumer: str, version: str) -> tuple[LibraryUse, ...]:
        raise AssertionError(consumer)


def books(spans: Mapping[str, str], *judged: JudgedWheel, cuda: Collection[str] = (),
          lacking: Mapping[str, tuple[str, ...]] | None = None, nvidia: FakeNvidiaBook | None = None,
          having: Mapping[str, tuple[str, ...]] | None = None) -> Books:
    """Books that know these names of torch, these wheels, and these libraries of NVIDIA's."""
    return Books(torch=FakeTorchBook(spans, cuda, lacking or {}, having or {}), nvidia=nvidia or FakeNvidiaBook(),
                 judged=ReadWheels(judged))
