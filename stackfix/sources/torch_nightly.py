"""Pages of the nightly builds on the torch index: of them the matrix knows nothing, so that only the index can tell."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from stackfix.errors import Unreachable
from stackfix.nightly import DATED, FOLDER, nightly_of
from stackfix.sources.torch_index_page import TorchPage, of_variant


class NightlyPage(TorchPage):
    """One project on a nightly path, `nightly/cu128`; triton lies above the paths, in `nightly`."""

    def version_strings(self) -> tuple[str, ...]:
        """Nightlies of the path's variant; of a project without dates all versions."""
        found = self._page.version_strings()
        if self.name not in DATED:
            return found
        return tuple(text for text in found if nightly_of(text) and of_variant(text, self.path.rpartition("/")[2]))

    def _folder(self, url: str) -> str:
        folder = super()._folder(url)
        above = unquote(urlsplit(url).path).rpartition("/")[0]      # of a copy on another host that has another base
        own = (each for each in (self.path, FOLDER) if above.endswith(f"/{each}"))
        return folder if self._takes(folder) else next(own, folder)

    def _takes(self, folder: str) -> bool:
        return folder in {self.path, FOLDER}


def only_there(fault: Unreachable) -> Unreachable:
    """That the index did not answer, and that nothing stands in for its nightlies."""
    return Unreachable(
        f"nightlies of torch: {fault.thing}",
        f"{fault.reason}; of a nightly nothing is known but what the torch index says",
        fault.hint or "ask again where the torch index can be reached, or name a copy with --torch-index",
    )
