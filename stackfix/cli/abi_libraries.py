"""Another version of a library wheel, where the installed one lacks what is called, and what the others need of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from stackfix.abi.host import Host, Suggestion
from stackfix.abi.nearest import SYMBOLS
from stackfix.abi.nvidia_versions import version_key
from stackfix.abi.records import AbiFacts, Bounds, Nearest, NvidiaBook
from stackfix.diagnose.install_lines import install_line_in
from stackfix.diagnose.library_needs import parsed
from stackfix.diagnose.releases import admits

if TYPE_CHECKING:
    from stackfix.inspect.compiled_installed import Installation


def other_libraries(facts: AbiFacts, host: Host, lost: set[str], book: NvidiaBook,
                    installation: Installation) -> Iterator[Suggestion]:
    """The version of each library wheel that is nearest to the installed one and has all that is called.

    One that would take from torch, or from another of the wheels, what it has now is none.
    """
    for package, installed in host.nvidia:
        bounds = [each for each in facts.library_bounds if each.package == package]
        if not any(each.soname in lost for each in bounds):
            continue
        fitting = [] if any(lacks_library(each, installed, book) for each in bounds) else [
            version for version in bounds[0].versions if all(version in each.versions for each in bounds)
            and not breaks(package, installed, version, host, book)]
        free = [each for each in fitting if not any(pins(installation, package, each))] or fitting
        if free:
            version = nearest_version(free, installed)
            line = install_line_in(installation, installation.find(package), f"{package}=={version}")
            yield Suggestion(nearest=Nearest(package=package, version=version, build=None, basis=SYMBOLS),
                             command="  # ".join((line, *list(pins(installation, package, version))[:1])))


def lacks_library(bounds: Bounds, installed: str, book: NvidiaBook) -> bool:
    """Whether the installed version has no library of this soname: another has it in place of the one that is there."""
    exported = book.exported(bounds.package, installed, bounds.soname)
    return exported is not None and not exported


def breaks(package: str, installed: str, version: str, host: Host, book: NvidiaBook) -> bool:
    """Whether torch, or one of the wheels, finds in a version less than in the installed one, or it less in them."""
    others = dict(host.nvidia)
    for use in book.uses(package, version):
        there = others.get(use.bounds.package)
        if (there is not None and use.bounds.package != package and not is_among(there, use.bounds.versions)
                and is_among(there, book.versions(use.bounds.package))):
            return True
    torch = [("torch", host.torch.version.partition("+")[0])] if host.torch is not None else []
    known = is_among(installed, book.versions(package))
    for consumer, release in (*torch, *host.nvidia):
        for use in book.uses(consumer, release):
            wanted = use.bounds
            if (wanted.package == package and not is_among(version, wanted.versions)
                    and (not known or is_among(installed, wanted.versions))):
                return True
    return False


def pins(installation: Installation, package: str, version: str) -> Iterator[str]:
    """Requirements of installed packages that a version breaks: `torch 2.3.1 requires nvidia-nccl-cu12==2.20.5`."""
    for each in installation.distributions:
        found = [specifier for line in each.requires for name, specifier in (parsed(line),)
                 if name == package and specifier]
        if found and not any(admits(specifier, version) for specifier in found):    # lines for several platforms
            yield f"{each.name} {each.version.partition('+')[0]} requires {package}{found[0]}"


def nearest_version(versions: Sequence[str], installed: str) -> str:
    """The oldest that is newer than the installed one, else the newest."""
    here = version_key(installed)
    newer = [each for each in versions if here is not None and (key := version_key(each)) and key > here]
    return newer[0] if newer else versions[-1]


def is_among(version: str, versions: Iterable[str]) -> bool:
    """Whether a version is one of these, however many zeros it ends in."""
    key = version_key(version)
    return any(version_key(each) == key for each in versions)


__all__ = ["other_libraries"]
