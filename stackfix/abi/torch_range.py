"""Which torch releases compiled files can load with, by the names that they ask for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from stackfix.abi.can_load import can_load
from stackfix.abi.flavour import NEW
from stackfix.abi.records import BookRelease, CompiledFile, Deciding, PatchException, TorchBook, TorchRange
from stackfix.abi.torch_asked import Asked, asked_of, is_linked, only_in_cuda, patch_of, reasons, string_abi_of


def torch_range(files: Sequence[CompiledFile], book: TorchBook) -> TorchRange | None:
    """The releases that export all that the files of one package ask for.

    None: nothing is asked, and none of the files is linked against torch. Nothing asked by a file that is: each minor.
    """
    asked = asked_of(files, book)
    if not asked and not is_linked(files):
        return None
    minors = tuple(release.minor for release in book.releases)
    patches, lacking, had_once = patches_for(asked, book)
    unknown = [each for each in asked if not each.minors and each.key not in had_once]
    counted = [each for each in asked if each.minors or each.key in had_once]
    known = tuple(minor for minor in minors if all(minor in each.minors for each in counted))
    fitting = () if unknown else known
    flavour = string_abi_of(asked, book)
    floor, ceiling = bounds(counted, known, minors)
    single = () if unknown else tuple(each for each in patches if minor_of(each) not in fitting)
    own = {release.minor for release in book.releases if has_string_of(release, asked, flavour)}
    return TorchRange(
        asked=len(asked), minors=fitting, known=known, string_abi=flavour,
        index_minors=tuple(minor for minor in fitting if minor in own),
        floor=floor, ceiling=ceiling, unknown=reasons(unknown),
        exceptions=tuple(each for each in lacking if minor_of(each.version) in fitting),
        patches=single, index_patches=tuple(each for each in single if minor_of(each) in own),
        cuda_torch=any(only_in_cuda(asked, book)),
        stable=bool(asked) and not any(each.name.startswith("_Z") for each in asked),
    )


def has_string_of(release: BookRelease, asked: Iterable[Asked], flavour: str | None) -> bool:
    """Whether the wheel that was read of a minor has the std::string that is asked for."""
    return flavour in {None, release.string_abi} and not (
        release.string_abi == NEW and any(release.minor in each.tagged for each in asked))


def bounds(asked: Sequence[Asked], fitting: Sequence[str],
           minors: Sequence[str]) -> tuple[tuple[Deciding, ...], tuple[Deciding, ...]]:
    """(why nothing older, why nothing newer); where nothing fits: the names that begin last, that end first.

    Before them go names that no minor's newest patch has, only another one: they alone decide.
    """
    if fitting:
        first, last = minors.index(fitting[0]), minors.index(fitting[-1])
        older = [each for each in asked if first > 0 and minors[first - 1] not in each.minors]
        newer = [each for each in asked if last + 1 < len(minors) and minors[last + 1] not in each.minors]
    elif single := [each for each in asked if not each.minors]:
        older, newer = single, []
    else:
        spans = [(minors.index(each.minors[0]), minors.index(each.minors[-1]), each) for each in asked if each.minors]
        begins, ends = max((begin for begin, _, _ in spans), default=0), min((end for _, end, _ in spans), default=0)
        older = [each for begin, _, each in spans if begin == begins]
        newer = [each for _, end, each in spans if end == ends]
    return reasons(older), reasons(newer)


def patches_for(asked: Sequence[Asked],
                book: TorchBook) -> tuple[list[str], list[PatchException], Collection[str]]:
    """(patches that export all, names that patches lack, keys of names that only patches have).

    Asked are those that differ from their minor's newest.
    """
    keys = {each.key for each in asked}
    fitting, lacking, had_once = list[str](), list[PatchException](), set[str]()
    for minor, version, exceptions in differing(book):
        told = [each for each in exceptions if each.key in keys]
        patch = patch_of(version, told)
        if all(patch.has(each, minor) for each in asked):
            fitting.append(version)
        lacking += [each for each in told if not each.exported]
        had_once |= patch.more
    return fitting, lacking, had_once


def differing(book: TorchBook) -> Iterator[tuple[str, str, tuple[PatchException, ...]]]:
    """(minor, patch release, exceptions) of each patch that differs from the newest of its minor."""
    for release in book.releases:
        for version in release.patches:
            exceptions = book.exceptions(version)
            if exceptions:
                yield release.minor, version, exceptions


def minor_of(version: str) -> str:
    """"2.4" of "2.4.0"."""
    return ".".join(version.split(".")[:2])


__all__ = ["can_load", "minor_of", "torch_range"]
