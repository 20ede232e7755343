"""Nightly paths of the torch index on loopback, beside its other paths: names and metadata as the real ones have them.

What torch requires is what pip said of torch-2.9.0.dev20250902+cu128-cp310-cp310-manylinux_2_28_x86_64.whl in a public
log (its libraries, the git version of pytorch-triton, which lies above the paths). torchvision names a torch without a
local part, some nights that of the night before; torchaudio of those weeks is numbered 2.8.0. Bytes are stand-ins.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from tests.replay.http import Answer, Request
from tests.replay.torch_index import LoopbackTorchIndex, Row, TorchReplica
from tests.replay.wheels import make_wheel

LINUX = 'platform_system == "Linux"'
GENERAL = ("filelock", "typing-extensions>=4.10.0", 'setuptools; python_version >= "3.12"', "sympy>=1.13.3",
           "networkx>=2.5.1", "jinja2", "fsspec>=0.8.5")
EXTRAS = ('optree>=0.13.0; extra == "optree"', 'opt-einsum>=3.3; extra == "opt-einsum"', 'pyyaml; extra == "pyyaml"')
CU128 = {
    "nvidia-cuda-nvrtc-cu12": "12.8.93", "nvidia-cuda-runtime-cu12": "12.8.90", "nvidia-cuda-cupti-cu12": "12.8.90",
    "nvidia-cudnn-cu12": "9.10.2.21", "nvidia-cublas-cu12": "12.8.4.1", "nvidia-cufft-cu12": "11.3.3.83",
    "nvidia-curand-cu12": "10.3.9.90", "nvidia-cusolver-cu12": "11.7.3.90", "nvidia-cusparse-cu12": "12.5.8.93",
    "nvidia-cusparselt-cu12": "0.7.1", "nvidia-nccl-cu12": "2.27.5", "nvidia-nvshmem-cu12": "3.3.20",
    "nvidia-nvtx-cu12": "12.8.90", "nvidia-nvjitlink-cu12": "12.8.93", "nvidia-cufile-cu12": "1.13.1.3",
}
TRITON = "3.4.0+gitf7888497"
MACHINES = {
    "cu128": ("manylinux_2_28_x86_64", "win_amd64"), "cu126": ("manylinux_2_28_x86_64",),
    "cu130": ("manylinux_2_28_x86_64",),
    "cpu": ("manylinux_2_28_x86_64", "manylinux_2_28_aarch64", "win_amd64", "macosx_11_0_arm64"),
}
PYTHONS = ("310", "311", "312", "313", "313t")


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """What was built in one night. `vision`: the torch that torchvision was built against; None: there is none."""

    date: str                                   # "20250902"
    release: str = "2.9.0"
    pins: Mapping[str, str] = field(default_factory=dict)       # in place of the usual ones
    vision: str | None = ""                     # "": the same night's
    audio: bool = True
    triton: str = TRITON
    triton_name: str = "pytorch-triton"         # "triton" since 2026
    lines: tuple[str, ...] | None = None        # what the CUDA build requires of libraries, in place of the usual pins
    paths: tuple[str, ...] = ("cu128", "cpu")
    pythons: tuple[str, ...] = PYTHONS

    def rows(self) -> Iterator[Row]:
        """The files of the night."""
        for path in self.paths:
            for machine in MACHINES[path]:
                yield from self._of_machine(path, machine)
        tags = "manylinux_2_27_x86_64.manylinux_2_28_x86_64"
        for python in self.pythons:
            yield row("nightly", self.triton_name, self.triton, f"{tag(python)}-{tags}",
                      ("setuptools>=40.8.0", 'importlib-metadata; python_version < "3.10"'))

    def _of_machine(self, path: str, machine: str) -> Iterator[Row]:
        local = "" if machine.startswith("macosx") else f"+{path}"
        torch = f"{self.release}.dev{self.date}"
        for python in self.pythons:
            end = f"{tag(python)}-{machine}"
            if machine.startswith("macosx"):
                end = f"cp{python.rstrip('t')}-none-{machine}" if not python.endswith("t") else end
            yield row(f"nightly/{path}", "torch", f"{torch}{local}", end, self._requires(path, machine))
            if self.vision is not None:
                on = f"torch=={self.vision or torch}"
                yield row(f"nightly/{path}", "torchvision", f"0.24.0.dev{self.date}{local}", f"{tag(python)}-{machine}",
                          ("numpy", on, "pillow!=8.3.*,>=5.3.0", 'gdown>=4.7.3; extra == "gdown"'))
            if self.audio:
                yield row(f"nightly/{path}", "torchaudio", f"2.8.0.dev{self.date}{local}", f"{tag(python)}-{machine}",
                          (f"torch=={torch}",))

    def _requires(self, path: str, machine: str) -> tuple[str, ...]:
        if path == "cpu" or not machine.endswith("x86_64"):
            return (*GENERAL, *EXTRAS)
        marker = f'{LINUX} and platform_machine == "x86_64"'
        pins = {**CU128, **self.pins}
        usual = tuple(f"{name}=={version}; {marker}" for name, version in pins.items())
        return (*GENERAL, *(usual if self.lines is None else self.lines),
                f'{self.triton_name}=={self.triton}; {marker} and python_version != "3.13t"', *EXTRAS)


def tag(python: str) -> str:
    """`cp313-cp313t` of 313t."""
    return f"cp{python.rstrip('t')}-cp{python}"


def row(path: str, project: str, version: str, tags: str, requires: tuple[str, ...]) -> Row:
    """One file, not yet with its hash."""
    file = f"{project.replace('-', '_')}-{version}-{tags}.whl"
    return Row(path=path, project=project, version=version, file=file, requires=requires, sha256=None)


@cache
def stand_in(row: Row) -> bytes:
    """A small wheel that installs, under the file's name."""
    package = "triton" if row.project == "pytorch-triton" else row.project
    return make_wheel(row.file, name=row.project, version=row.version, requires=row.requires or (),
                      requires_python=">=3.10", contents={f"{package}/__init__.py": f"__version__ = '{row.version}'\n"})


@cache
def hashed(row: Row) -> Row:
    """The row with the hash of its stand-in."""
    return replace(row, sha256=hashlib.sha256(stand_in(row)).hexdigest())


NIGHTS = (
    Night(date="20250829", vision="2.9.0.dev20250828"), Night(date="20250830"), Night(date="20250831", vision=None),
    Night(date="20250901"), Night(date="20250902", paths=("cu128", "cu126", "cpu")),
    Night(date="20250903", pins={"nvidia-nccl-cu12": "2.27.7"}), Night(date="20250904", vision=None, audio=False),
    Night(date="20250905", vision="2.9.0.dev20250904"),
    Night(date="20250907", release="2.10.0", pythons=("312", "313")),
)


@dataclass(kw_only=True)
class LoopbackNightlies(LoopbackTorchIndex):
    """Fills http.Site: the torch index with these nights on its nightly paths."""

    nights: Iterable[Night] = NIGHTS

    def __post_init__(self) -> None:
        self._rows: dict[str, list[Row]] = {}
        known: dict[tuple[str, str], Row] = {}
        for each in (each for night in self.nights for each in night.rows()):
            altered = self.alter(hashed(each))
            if altered is not None and known.setdefault((each.path, each.file), altered) is altered:
                self._rows.setdefault(altered.path, []).append(altered)

    def fetch(self, request: Request) -> Answer:
        parts = [part for part in request.path.split("/") if part]
        if parts[:2] != ["whl", "nightly"]:
            return super().fetch(request)
        if request.path.endswith("/") and len(parts) == 4:
            return self.nightly_page("/".join(parts[1:3]), parts[3])
        file = parts[-1].removesuffix(".metadata")
        found = next((each for each in self._rows.get("/".join(parts[1:-1]), ()) if each.file == file), None)
        if found is None:
            return Answer(status=404)
        if parts[-1].endswith(".metadata"):
            return Answer(headers=(("Content-Type", "binary/octet-stream"),), body=self.metadata_of(found).encode())
        return self._bytes(request, self.wheel(found))

    def nightly_page(self, path: str, project: str) -> Answer:
        """The page of a project: the path's own files, and those above the paths."""
        listed = [each for each in (*self._rows.get(path, ()), *self._rows.get("nightly", ()))
                  if each.project == project and path in self._rows]
        if not listed:
            return Answer(status=404)
        return self._listing(project, listed)

    def metadata_of(self, row: Row) -> str:
        if not row.path.startswith("nightly"):
            return super().metadata_of(row)
        if row.file in self.metadata:
            return self.metadata[row.file]
        with zipfile.ZipFile(io.BytesIO(self.wheel(row))) as archive:
            return next(archive.read(name) for name in archive.namelist() if name.endswith("/METADATA")).decode()

    def wheel(self, row: Row) -> bytes:
        return stand_in(replace(row, sha256=None)) if row.path.startswith("nightly") else super().wheel(row)


class NightlyReplica(TorchReplica):
    """The torch index with nightlies while the block runs."""

    serves = LoopbackNightlies
