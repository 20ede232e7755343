"""Locks built by hand, of real tiny wheels that a loopback index serves."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from stackfix.matrix.records import TorchBuild
from stackfix.resolve.records import Lock, LockedPackage, StackSummary, Target, TargetLock
from stackfix.sources.records import IndexFile
from tests.replay.releases import ReleaseServer, stand_in
from tests.replay.server import ReplayServer
from tests.replay.store import Store
from tests.replay.wheels import make_wheel

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
TAG = PYTHON.replace(".", "")
FLASH = f"flash_attn-2.5.8+cu122torch2.3cxx11abiFALSE-cp{TAG}-cp{TAG}-linux_x86_64.whl"
COMMAND = "stackfix lock --torch 2.3 --cuda 12.1"
FAST = ("filelock; extra == 'fast'\nProvides-Extra: fast",)     # two lines of METADATA
HERE = Target(python=PYTHON, platform="linux-64", glibc="2.28")

WHEELS: Mapping[str, Mapping[str, bytes]] = {
    "torch": {
        f"torch-2.3.1-cp{TAG}-cp{TAG}-manylinux1_x86_64.whl": make_wheel(
            f"torch-2.3.1-cp{TAG}-cp{TAG}-manylinux1_x86_64.whl", requires=["filelock"]),
        "torch-2.3.0-py3-none-any.whl": make_wheel("torch-2.3.0-py3-none-any.whl"),
    },
    "filelock": {"filelock-3.29.0-py3-none-any.whl": make_wheel("filelock-3.29.0-py3-none-any.whl")},
    "einops": {"einops-0.8.1-py3-none-any.whl": make_wheel("einops-0.8.1-py3-none-any.whl")},
    "tiny-server": {
        "tiny_server-1.0-py3-none-any.whl": make_wheel("tiny_server-1.0-py3-none-any.whl", requires=FAST),
        f"tiny_server-1.0-cp{TAG}-cp{TAG}-manylinux_2_17_x86_64.whl": make_wheel(
            f"tiny_server-1.0-cp{TAG}-cp{TAG}-manylinux_2_17_x86_64.whl", requires=FAST),
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Loopback:
    """An index and a release source, both on loopback."""

    index_url: str
    release_url: str


@contextmanager
def loopback(folder: Path, projects: Mapping[str, Mapping[str, bytes]] = WHEELS) -> Iterator[Loopback]:
    """Both servers, for as long as the block runs."""
    with ReplayServer(Store(folder), projects=projects) as index, ReleaseServer({"2.5.8": (FLASH,)}) as releases:
        yield Loopback(index_url=index.url, release_url=releases.url)


def index_file(project: str, filename: str, content: bytes, *, url: str | None = None, **more: Any) -> IndexFile:
    """The file as the index page states it."""
    fields: dict[str, Any] = {
        "project": project, "filename": filename, "version": filename.split("-")[1],
        "url": url or f"https://files.example/{project}/{filename}", "sha256": hashlib.sha256(content).hexdigest(),
        "requires_python": None, "yanked": None, "size": len(content), "upload_time": "2024-06-05T00:00:00Z",
        "core_metadata": None, "index": "https://index.example/simple",
    }
    return IndexFile(**{**fields, **more})


def package(name: str, version: str, files: tuple[IndexFile, ...], **more: Any) -> LockedPackage:
    """One pin."""
    fields: dict[str, Any] = {"requires": (), "requested_by": ()}
    return LockedPackage(name=name, version=version, files=files, **{**fields, **more})


def indexed(name: str, version: str, base: str, **more: Any) -> LockedPackage:
    """A pin of all wheels of `version` in WHEELS, served below `base`."""
    files = tuple(
        index_file(name, filename, content, url=f"{base}/files/{name}/{quote(filename)}")
        for filename, content in WHEELS[name].items() if filename.split("-")[1] == version
    )
    return package(name, version, files, **more)


def flash_wheel(release_url: str) -> LockedPackage:
    """flash-attn by URL and hash; its file name has a local version, its metadata has not."""
    file = index_file("flash-attn", FLASH, stand_in(FLASH), url=f"{release_url}/releases/download/v2.5.8/{FLASH}")
    return package("flash-attn", "2.5.8", (file,), requires=("einops", "torch"), requested_by=("stack",), direct=True)


def sample_packages(servers: Loopback) -> tuple[LockedPackage, ...]:
    """einops, filelock, flash-attn by URL, tiny-server with an extra, torch."""
    base = servers.index_url.removesuffix("/simple")
    return (
        indexed("einops", "0.8.1", base, requested_by=("flash-attn",)),
        indexed("filelock", "3.29.0", base, requested_by=("tiny-server", "torch")),
        flash_wheel(servers.release_url),
        indexed("tiny-server", "1.0", base, requires=("filelock",), requested_by=("--with tiny-server[fast]",),
                extras=("fast",)),
        indexed("torch", "2.3.1", base, requires=("filelock",), requested_by=("--torch 2.3", "flash-attn")),
    )


def target_lock(packages: tuple[LockedPackage, ...], target: Target = HERE) -> TargetLock:
    """The lock of one target."""
    return TargetLock(target=target, build=BUILD, packages=packages)


def lock_of(*targets: TargetLock) -> Lock:
    """A lock of these targets."""
    return Lock(stack=SUMMARY, targets=targets, notes=())


BUILD = TorchBuild(
    version="2.3.1", platform="linux-64", cuda="12.1", index="default", pythons=(PYTHON,), cxx11_abi=False,
    gpu_archs=("sm_90",), requires=("filelock",), toolkit="12.1.1", cudnn="8.9.2.26", nccl="2.20.5", glibc="2.17",
    source="a test", confidence="certain",
)
SUMMARY = StackSummary(
    torch="2.3.1", cuda="12.1", cxx11_abi=False, cudnn="8.9.2.26", nvjitlink="12.1.105", nccl="2.20.5",
    flash_attn="2.5.8", driver_min="525.60.13", pythons=(PYTHON,), platforms=("linux-64",),
)
NOWHERE = Loopback(index_url="https://files.example/simple", release_url="https://releases.example/flash")
