"""Whether a library of one torch release exports a name, by the book of torch."""

from __future__ import annotations

from functools import cached_property

from stackfix.abi.flavour import NEW, TAGGED, name_flavour
from stackfix.abi.mangled import neutral
from stackfix.abi.names import is_torch_symbol
from stackfix.abi.records import BookRelease, TorchBook


class ReleaseNames:
    """Fills loading_symbols.TorchNames for a release that the book has read."""

    def __init__(self, book: TorchBook, release: BookRelease, version: str) -> None:
        self._book, self._release, self._version = book, release, version

    @cached_property
    def _changes(self) -> dict[str, bool]:
        """Keys of which this patch release has another say than the newest of its minor."""
        if self._version == self._release.version:
            return {}
        return {each.key: each.exported for each in self._book.exceptions(self._version)}

    def is_told(self, name: str) -> bool:
        """Whether it is one of torch's own: of the others the book tells nothing."""
        return is_torch_symbol(name)

    def offers(self, library: str, name: str) -> bool:
        """Whether the release exports the name, from this library."""
        if not is_torch_symbol(name):
            return False
        key, flavour, minor = neutral(name), name_flavour(name), self._release.minor
        if flavour is not None and flavour != self._release.string_abi:
            return False
        if self._release.string_abi == NEW and key.startswith("_Z") and name_flavour(key) is None and (
                minor in self._book.minors(key + TAGGED)) != (flavour == NEW):
            return False        # the wheel has it with a tag behind and the name has none, or the other way round
        if not self._changes.get(key, minor in self._book.minors(name)):
            return False
        libraries = self._book.libraries(name)
        return library in libraries or not libraries


def release_names(book: TorchBook, version: str) -> ReleaseNames | None:
    """The names of a release; None where the book has not read it."""
    for each in book.releases:
        if version == each.version or version in each.patches:
            return ReleaseNames(book, each, version)
    return None


__all__ = ["ReleaseNames", "release_names"]
