"""The release nearest to the one that is there which fits: of an extension for a torch, of torch for an extension.

Near is what has the fewest releases between; of two the newer. What a wheel's symbols say goes before what is declared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from stackfix.abi.nvidia_versions import Key, version_key
from stackfix.abi.records import JudgedWheel, Nearest, TorchRange
from stackfix.matrix.records import Companion, FlashAttnWheel, TorchBuild
from stackfix.platforms import LINUX_MACHINES

SYMBOLS, DECLARED, FILE_NAME = "symbols", "declared", "file name"
BASES = (SYMBOLS, FILE_NAME, DECLARED)      # the surest first
FLASH, DEFAULT = "flash-attn", "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchThere:
    """The torch that an extension is to load with. None: not known, and nothing is left out for it."""

    release: str                    # "2.3.1", without its local version
    string_abi: str | None = None
    cuda: int | None = None         # its CUDA major
    python: str | None = None       # "3.11"
    platform: str = "linux-64"

    @property
    def minor(self) -> str:
        """"2.3"."""
        return ".".join(self.release.split(".")[:2])


def nearest_extension(package: str, version: str, torch: TorchThere, *, judged: Iterable[JudgedWheel] = (),
                      companions: Iterable[Companion] = (), flash: Iterable[FlashAttnWheel] = (),
                      others: Iterable[str] = ()) -> Nearest | None:
    """The release of `package` nearest to `version` that fits the torch; None where none is known.

    Of the iterables only the rows of the package count; `others` are further releases that there are. A release whose
    wheels were read is judged by them alone.
    """
    wheels = [each for each in judged if each.package == package]
    read = {each.version.partition("+")[0] for each in wheels}
    rows = [each for each in companions if each.package == package]
    assets = list(flash) if package == FLASH else []
    found = [*by_symbols(wheels, torch), *by_file_name(assets, torch), *(
        each for each in by_declaration(rows, torch) if each.version not in read)]
    every = {version.partition("+")[0], *others, *read, *(each.version for each in rows)}
    every.update(each.version for each in assets)
    return closest(found, version, every)


def nearest_torch(range_: TorchRange, release: str, builds: Iterable[TorchBuild], *, cuda: Sequence[int] = (),
                  python: str | None = None, platform: str = "linux-64",
                  declared: Callable[[str], bool] | None = None,
                  locked: Callable[[TorchBuild], bool] | None = None) -> Nearest | None:
    """The torch nearest to `release` that the symbols admit and of which a build fits; None where none is known.

    `cuda`: majors that the extension is linked against. `declared`: whether its metadata admit a release;
    those go before others, since an installer takes no other, and of them those of the default index, which alone is
    locked, and of them those that `locked` has for builds that a lock takes beside the extension. Of a minor the
    newest patch is meant, unless only another fits.
    """
    every = [each for each in builds if each.platform == platform]
    fitting = [each for each in every if admits_build(range_, each, cuda, python)]
    if declared is not None:
        fitting = [each for each in fitting if declared(each.version)] or fitting
    fitting = [each for each in fitting if each.index == DEFAULT] or fitting
    if locked is not None:
        fitting = [each for each in fitting if locked(each)] or fitting
    newest = {minor: max(keyed(each.version for each in fitting if minor_of(each.version) == minor))
              for minor in {minor_of(each.version) for each in fitting}}
    chosen = {each.version: each for each in fitting
              if each.version in range_.patches or (version_key(each.version), each.version) == newest[
                  minor_of(each.version)]}
    found = [Nearest(package="torch", version=version, build=None if build.index == DEFAULT else build.index,
                     basis=SYMBOLS) for version, build in chosen.items()]
    return closest(found, release, {release.partition("+")[0], *(each.version for each in every)})


def admits_build(range_: TorchRange, build: TorchBuild, cuda: Sequence[int], python: str | None) -> bool:
    """Whether an extension with these facts can load with a build, as far as both are known."""
    if not range_.loads(build.version):
        return False
    if range_.string_abi is not None and not has_string(range_, build, minor_of(build.version)):
        return False
    if build.cuda == "cpu":
        if range_.cuda_torch or cuda:
            return False
    elif cuda and int(build.cuda.partition(".")[0]) not in cuda:
        return False
    return python is None or not build.pythons or python in build.pythons


def has_string(range_: TorchRange, build: TorchBuild, minor: str) -> bool:
    """Whether a build has the std::string that is asked for: certain, not merely possible."""
    if build.cxx11_abi is not None:
        return range_.string_abi == ("new" if build.cxx11_abi else "old")
    own = minor in range_.index_minors or build.version in range_.index_patches
    return build.index == DEFAULT and build.platform == "linux-64" and own


def by_symbols(wheels: Iterable[JudgedWheel], torch: TorchThere) -> Iterator[Nearest]:
    """Releases of which a wheel that was read can load with the torch, and whose metadata do not exclude it."""
    for each in wheels:
        if not each.file.removesuffix(".whl").endswith(("any", LINUX_MACHINES.get(torch.platform, "x86_64"))):
            continue
        string = None in {each.string_abi, torch.string_abi} or each.string_abi == torch.string_abi
        cuda = torch.cuda is None or not each.cuda or torch.cuda in each.cuda
        # for another Python it is built as it is for this one
        if torch.minor in each.torch and string and cuda and admitted(each.declares, torch.release):
            yield Nearest(package=each.package, version=each.version, basis=SYMBOLS,
                          build=each.file if for_python(each.file, torch.python) else None)


def by_file_name(wheels: Iterable[FlashAttnWheel], torch: TorchThere) -> Iterator[Nearest]:
    """flash-attn's wheels, whose names say for which torch they are."""
    for each in wheels:
        string = None if torch.string_abi is None else torch.string_abi == "new"
        cuda = each.cuda_tag.removeprefix("cu")[:2]
        if (each.torch_minor == torch.minor and string in {None, each.cxx11_abi} and each.platform == torch.platform
                and torch.python in {None, each.python} and (torch.cuda is None or cuda == str(torch.cuda))):
            yield Nearest(package=FLASH, version=each.version, build=each.file, basis=FILE_NAME)


def by_declaration(rows: Iterable[Companion], torch: TorchThere) -> Iterator[Nearest]:
    """Releases that the matrix knows for the torch."""
    for each in rows:
        cuda = None if each.cuda is None else int(each.cuda.partition(".")[0])
        if each.torch is None or (each.same_cuda != "any" and None not in {cuda, torch.cuda} and cuda != torch.cuda):
            continue
        if admitted(each.torch, torch.release):
            yield Nearest(package=each.package, version=each.version, build=None, basis=DECLARED)


def admitted(specifier: str | None, release: str) -> bool:
    """Whether a requirement of torch admits a release; none, and any version, admit all."""
    if specifier in {None, "*", ""}:
        return True
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    clauses = ",".join(each.partition("+")[0] for each in (specifier or "").split(","))    # of a pin: which build
    try:
        return SpecifierSet(clauses).contains(release, prereleases=True)
    except InvalidSpecifier:
        return False


def for_python(file: str, python: str | None) -> bool:
    """Whether a wheel's name lets this Python install it."""
    if python is None:
        return True
    _, pythons, abis, _ = file.removesuffix(".whl").rsplit("-", 3)
    major, _, minor = python.partition(".")
    own = f"cp{major}{minor}"
    if own in pythons.split("."):
        return True
    older = [each for each in pythons.split(".") if each.startswith(f"cp{major}") and each[3:].isdigit()
             and int(each[3:]) <= int(minor)]
    return ("abi3" in abis and bool(older)) or ("none" in abis and "py3" in pythons.split("."))


def closest(found: Iterable[Nearest], version: str, every: Iterable[str]) -> Nearest | None:
    """The one with the fewest of `every` between it and `version`."""
    order = [text for _, text in sorted(keyed(set(every)))]
    here = version.partition("+")[0]
    if here not in order:
        return None
    place = {text: number for number, text in enumerate(order)}

    def rank(each: Nearest) -> tuple[int, int, int, str]:
        at = place[each.version.partition("+")[0]]
        return abs(at - place[here]), -at, BASES.index(each.basis), each.build or ""

    return min((each for each in found if each.version.partition("+")[0] in place), key=rank, default=None)


def keyed(versions: Iterable[str]) -> list[tuple[Key, str]]:
    """The versions that can be compared, with what they compare by."""
    return [(key, each) for each in versions if (key := version_key(each)) is not None]


def minor_of(version: str) -> str:
    """"2.4" of "2.4.0"."""
    return ".".join(version.split(".")[:2])


__all__ = ["DECLARED", "DEFAULT", "FLASH", "SYMBOLS", "TorchThere", "nearest_extension", "nearest_torch"]
