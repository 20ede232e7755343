"""Small books of symbols: what NVIDIA's wheels export and use, as the almanac writes it, and judged wheels by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from stackfix.abi.judged import ReadWheels
from stackfix.abi.nvidia_book import open_nvidia_book
from stackfix.abi.records import BookRelease, Books, JudgedWheel, PatchException

MINORS = ("2.0", "2.1", "2.2", "2.3", "2.4")
NVJITLINK = {"12.0.140": "", "12.1.55": "_12_1", "12.1.105": "_12_1", "12.4.127": "_12_1 _12_4"}
SYMBOL = "__nvJitLinkAddData"


@dataclass(frozen=True, slots=True)
class FakeTorchBook:
    """A book that knows which minors there are, and none of their names."""

    known: tuple[str, ...] = MINORS
    patches: tuple[str, ...] = ()       # of each minor, beside its newest, which is "1"

    @property
    def releases(self) -> tuple[BookRelease, ...]:
        return tuple(BookRelease(minor=minor, version=f"{minor}.1", file="", sha256="", string_abi="old",
                                 patches=tuple(f"{minor}.{patch}" for patch in self.patches))
                     for minor in self.known)

    def minors(self, name: str) -> tuple[str, ...]:
        return ()

    def libraries(self, name: str) -> tuple[str, ...]:
        return ()

    def exceptions(self, version: str) -> tuple[PatchException, ...]:
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """One library: its soname, and per version of its package the names it exports."""

    soname: str
    versions: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What one library of a consumer uses, by version of the consumer."""

    file: str
    soname: str
    names: Mapping[str, tuple[str, ...]]


def books(
    folder: Path, libraries: Mapping[str, Library] | None = None, uses: Mapping[str, Use] | None = None,
    judged: tuple[JudgedWheel, ...] = (),
) -> Books:
    """The books, the one of NVIDIA written as the almanac does and read by its own reader."""
    found = libraries or {}
    (folder / "nvidia").mkdir(parents=True, exist_ok=True)
    (folder / "nvidia" / "packages.tsv").write_text("# packages\n" + "".join(
        f"{package}\t{version}\t{library.soname}\n"
        for package, library in found.items() for version in library.versions
    ), encoding="ascii")
    for soname in {library.soname for library in found.values()}:
        (folder / "nvidia" / f"{soname}.tsv").write_text("".join(
            f"@ {package}\n{_lines(library.versions)}" for package, library in found.items()
            if library.soname == soname
        ), encoding="ascii")
    (folder / "uses.tsv").write_text("# consumers\n" + "".join(
        f"= {consumer}\t{' '.join(use.names)}\n@ {use.file}\t{use.soname}\n{_lines(use.names)}"
        for consumer, use in (uses or {}).items()
    ), encoding="ascii")
    return Books(torch=FakeTorchBook(), nvidia=open_nvidia_book(folder), judged=ReadWheels(judged))


def _lines(versions: Mapping[str, tuple[str, ...]]) -> str:
    """Names in order, each with the versions that have it one by one."""
    names = sorted({name for found in versions.values() for name in found})
    order = list(versions)

    def spans(name: str) -> str:
        has = [name in versions[version] for version in order]
        if all(has):
            return name
        runs: list[str] = []
        for place, version in enumerate(order):
            if has[place] and (place == 0 or not has[place - 1]):
                runs.append(version)
            elif has[place]:
                runs[-1] = f"{runs[-1].partition('-')[0]}-{version}"
        if has[-1]:
            runs[-1] = f"{runs[-1].partition('-')[0]}-"
        return f"{name}\t{','.join(runs)}"

    return "".join(f"{spans(name)}\n" for name in names)


def nvjitlink(versions: Mapping[str, str] | None = None) -> dict[str, Library]:
    """nvJitLink releases with the minors that their functions carry in their names."""
    found = NVJITLINK if versions is None else versions
    return {"nvidia-nvjitlink-cu12": Library(soname="libnvJitLink.so.12", versions={
        version: ("base", *(f"{SYMBOL}{suffix}" for suffix in suffixes.split()))
        for version, suffixes in found.items()
    })}


def cusparse(**names: tuple[str, ...]) -> dict[str, Use]:
    """What cuSPARSE uses of nvJitLink: of the release that torch 2.3.1 pins, or by `v12_1_0_106=(…)`."""
    wanted = {name[1:].replace("_", "."): found for name, found in names.items()} or {
        "12.1.0.106": (f"{SYMBOL}_12_1",)}
    return {"nvidia-cusparse-cu12": Use(file="libcusparse.so.12", soname="libnvJitLink.so.12", names=wanted)}


def judged_wheel(file: str, sha256: str, torch: str, **changes: object) -> JudgedWheel:
    """A wheel that can load with these minors ("2.3 2.4")."""
    name, version = file.split("-")[:2]
    facts: dict[str, object] = {
        "package": name.replace("_", "-"), "version": version, "file": file, "sha256": sha256,
        "torch": tuple(torch.split()), "string_abi": None, "cuda": (), "declares": None, "disproved": (),
    }
    return JudgedWheel(**(facts | changes))  # type: ignore[arg-type]
