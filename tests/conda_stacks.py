"""Stacks that are decided over the bundled conda records alone: nobody answers for the package index."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from stackfix.conda.decide import conda_solver
from stackfix.conda.names import NameBook
from stackfix.conda.partner import CondaSide
from stackfix.conda.records import Channels, CondaRecord
from stackfix.conda.virtual import virtual_packages
from stackfix.errors import Unreachable
from stackfix.matrix.conda_names import load_conda_names
from stackfix.matrix.load import load_matrix
from stackfix.resolve.decide import decide
from stackfix.resolve.records import Lock, ProjectPage, Requirement, StackRequest
from stackfix.sources.records import CoreMetadata, IndexFile, ReleaseAsset
from tests.conda_channels import bundled_channels

NOBODY = "nobody answers here"


class NoIndex:
    """A package index that cannot be reached."""

    def prefetch_pages(self, names: tuple[str, ...]) -> None:
        pass

    def prefetch_metadata(self, files: tuple[IndexFile, ...]) -> None:
        pass

    def page(self, name: str) -> ProjectPage:
        raise Unreachable(name, NOBODY)

    def metadata(self, file: IndexFile) -> CoreMetadata:
        raise Unreachable(file.filename, NOBODY)


class NoReleases:
    """A release source that cannot be reached."""

    def assets(self, versions: tuple[str, ...]) -> dict[str, tuple[ReleaseAsset, ...]]:
        raise Unreachable("releases", NOBODY)

    def sha256(self, asset: ReleaseAsset) -> str:
        raise Unreachable(asset.file, NOBODY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request, as the command line would have it."""

    torch: str | None = None        # "2.3"
    cuda: str | None = None
    python: tuple[str, ...] = ()
    platform: tuple[str, ...] = ("linux-64",)
    flash_attn: str | None = None
    with_: tuple[str, ...] = ()
    channel: tuple[str, ...] = ()
    driver: str | None = None
    glibc: str = "2.28"
    layout: str | None = "native"

    @property
    def label(self) -> str:
        parts = [f"torch {self.torch or 'any'}", self.cuda or "", *self.python, *self.with_, *self.channel,
                 f"flash-attn {self.flash_attn}" if self.flash_attn else "",
                 *(name for name in self.platform if self.platform != ("linux-64",))]
        return " ".join(part for part in parts if part)

    def request(self) -> StackRequest:
        return StackRequest(
            torch=None if self.torch is None else f"=={self.torch}.*", cuda=self.cuda, pythons=self.python,
            platforms=self.platform, flash_attn=None if self.flash_attn is None else f"=={self.flash_attn}",
            no_flash_attn=self.flash_attn is None, layout=self.layout, channels=self.channel, driver=self.driver,
            glibc=self.glibc,
            requirements=tuple(Requirement(text=text, origin=f"--with {text}") for text in self.with_),
        )


@dataclass(kw_only=True)
class Decider:
    """Decides requests over the bundled records, which are unpacked once."""

    folder: Path
    environ: Mapping[str, str] = field(default_factory=dict)
    _opened: dict[tuple[str, ...], Channels] = field(default_factory=dict)

    def channels(self, names: tuple[str, ...] = ()) -> Channels:
        if names not in self._opened:
            self._opened[names] = bundled_channels(self.folder, *names)
        return self._opened[names]

    def decide(self, asked: Asked, opened: Callable[[tuple[str, ...]], Channels] | None = None) -> Lock:
        """The lock of conda formats alone. Raises NoConsistentStack."""
        matrix = load_matrix()
        side = CondaSide(
            opened=opened or self.channels, names=NameBook(load_conda_names()),
            virtual=partial(virtual_packages, matrix=matrix, environ=self.environ))
        no_driver = self.environ.get("CONDA_OVERRIDE_CUDA") == ""       # which the command line makes of it
        return decide(asked.request().with_(no_driver=no_driver), matrix, NoIndex(), NoReleases(),
                      command=lambda _: "", wheels=False, solver=conda_solver(side))


def channel_name(record: CondaRecord) -> str:
    """`pytorch`."""
    return record.channel.rpartition("/")[2]
