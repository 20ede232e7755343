"""Judge: pip. A real `pip install --require-hashes --dry-run` of the lock against shadow wheels.

pip fetches each wheel whole when it checks hashes, so the loopback index gives it small wheels of the same names with
the same METADATA, and the lock's hashes are exchanged for theirs. What pip judges is the form, the tags and closure;
the hashes themselves are judged by the index page, and by real installs.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.judges.command import Run, clean_environment, run
from tests.judges.lockfile import Entry, read_entries
from tests.judges.pages import Pages
from tests.judges.uv import NONE, Requires, on_loopback, release_path
from tests.replay.releases import REQUIRES, stand_in
from tests.replay.server import ReplayServer
from tests.replay.store import Store
from tests.replay.wheels import zip_bytes

MACHINES = {"linux-64": "x86_64", "linux-aarch64": "aarch64"}


def dry_run(requirements: Path, scratch: Path, *, pages: Pages, python: str, platform: str, glibc: str,
            requires: Requires = NONE) -> Run:
    """Verdict of pip on the file for the target. `requires`: Requires-Dist of the wheels that are given by URL."""
    entries = read_entries(requirements)
    entries = tuple(entry for entry in entries if entry.url is None or not on_loopback(entry.url))
    shadows = {entry.name: shadow_files(entry, pages, requires) for entry in entries}
    text = requirements.read_text(encoding="utf-8")
    for entry in entries:
        for stated, (_, body) in shadows[entry.name].items():
            text = text.replace(stated, hashlib.sha256(body).hexdigest())
    with shadow_index(scratch, shadows) as server:
        for entry in entries:
            if entry.url is not None:
                _, file = release_path(entry.url)
                text = text.replace(entry.url, f"{server.url.removesuffix('/simple')}/files/{entry.name}/{file}")
        judged = scratch / "judged-by-pip.txt"
        judged.write_text(text, encoding="utf-8")
        target = ["--python-version", python, "--implementation", "cp", "--abi", f"cp{python.replace('.', '')}",
                  "--abi", "abi3", "--abi", "none", *platform_options(MACHINES[platform], glibc)]
        return run([sys.executable, "-m", "pip", "install", "--dry-run", "--require-hashes", "--only-binary", ":all:",
                    "--no-cache-dir", "--target", scratch / "target", *target, "--index-url", server.url,
                    "-r", judged], cwd=scratch, env=clean_environment())


def platform_options(machine: str, glibc: str) -> list[str]:
    """--platform options, newest first."""
    names = [f"manylinux_2_{minor}_{machine}" for minor in range(int(glibc.split(".")[1]), 4, -1)]
    names += [f"manylinux2014_{machine}", f"manylinux2010_{machine}", f"manylinux1_{machine}", f"linux_{machine}"]
    return [word for name in names for word in ("--platform", name)]


def shadow_files(entry: Entry, pages: Pages, requires: Requires) -> dict[str, tuple[str, bytes]]:
    """sha256 in the lock -> (file name, small wheel of that name with the real METADATA)."""
    if entry.url is not None:
        _, file = release_path(entry.url)
        return {digest: (file, stand_in(file, requires.get(entry.url, REQUIRES))) for digest in entry.hashes}
    stated = pages.stated(entry.name)
    made = {}
    for digest in entry.hashes:
        filename, url = stated.get(digest, ("", ""))
        if filename.endswith(".whl"):
            made[digest] = (filename, shadow_wheel(filename, pages.metadata(url)))
    return made


def shadow_wheel(filename: str, metadata: str) -> bytes:
    """A wheel of the name with the METADATA and nothing else."""
    name, version = filename.split("-")[:2]
    info = f"{name}-{version}.dist-info"
    written = re.search(r"^Name: *(\S+)", metadata, re.MULTILINE)
    assert written is not None, filename
    members = {f"{info}/METADATA": metadata,
               f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: shadow of {filename}\nRoot-Is-Purelib: true\n",
               f"{info}/RECORD": f"{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n"}
    return zip_bytes(members)


@contextmanager
def shadow_index(scratch: Path, shadows: Mapping[str, Mapping[str, tuple[str, bytes]]]) -> Iterator[ReplayServer]:
    """An index of nothing but the shadow wheels."""
    projects = {name: dict(files.values()) for name, files in shadows.items()}
    with ReplayServer(Store(scratch / "nothing"), projects=projects) as server:
        yield server
