"""Trees, environments and wheels that the tests of `inspect` read."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stackfix.inspect.environment import inspect_environment
from stackfix.inspect.environment_records import Environment
from stackfix.inspect.places import Root

SITE = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
UV = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
HERMETIC = {"PATH": os.environ.get("PATH", ""), "PIP_CONFIG_FILE": os.devnull, "UV_NO_CONFIG": "1", "PIP_NO_INPUT": "1",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONNOUSERSITE": "1"}


def write(root: Path, relative: str, content: str | bytes = "") -> Path:
    """A file in a tree, folders made."""
    path = root / relative
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def link(root: Path, relative: str, target: str) -> Path:
    """A symbolic link in a tree, folders made."""
    path = root / relative
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)
    return path


def record_hash(content: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def make_wheel(folder: Path, name: str, version: str, files: Mapping[str, bytes], *, requires: tuple[str, ...] = (),
               tag: str = "py3-none-any") -> Path:
    """A real wheel with these files."""
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n" + "".join(
        f"Requires-Dist: {each}\n" for each in requires) + "\nA description.\nName: not-this\n"
    content = dict(files) | {
        f"{info}/METADATA": metadata.encode(),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: {tag}\n".encode(),
    }
    rows = io.StringIO()
    csv.writer(rows, lineterminator="\n").writerows(
        [*((inside, record_hash(body), len(body)) for inside, body in content.items()), (f"{info}/RECORD", "", "")])
    content[f"{info}/RECORD"] = rows.getvalue().encode()
    path = folder / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for inside, body in content.items():
            archive.writestr(inside, body)
    return path


def make_venv(folder: Path, *options: str) -> Path:
    """A real venv of the running Python, without pip."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", *options, str(folder)], check=True, timeout=120)
    return folder


def run_tool(*words: str | Path) -> None:
    subprocess.run([*map(str, words)], env=HERMETIC, check=True, capture_output=True, timeout=120)


def pip_install(prefix: Path, *words: str | Path) -> None:
    run_tool(sys.executable, "-m", "pip", "--python", prefix / "bin" / "python", "install", "--no-index", "--no-deps",
             *words)


def uv_install(prefix: Path, *words: str | Path) -> None:
    assert UV is not None, "uv belongs to the tools of the tests"
    run_tool(UV, "pip", "install", "--offline", "--no-index", "--no-deps", "--no-cache", "--python",
             prefix / "bin" / "python", *words)


def look(prefix: Path | str, environ: Mapping[str, str] | None = None, *, root: Root | None = None,
         deep: bool = False) -> Environment:
    """The environment of a prefix, as the running machine's root or another has it."""
    return inspect_environment(root or Root(), environ or {}, prefix=str(prefix), deep=deep)


def plain_venv(root: Path, prefix: str = "venv", python: str = "3.11") -> Path:
    """A venv written by hand, its base Python in the tree beside it; answers its site-packages."""
    write(root, f"{prefix}/pyvenv.cfg",
          f"home = /usr/bin\ninclude-system-site-packages = false\nversion = {python}.2\n")
    write(root, f"usr/lib/python{python}/os.py", "raise SystemExit('an inspected file was imported')\n")
    site = root / prefix / "lib" / f"python{python}" / "site-packages"
    site.mkdir(parents=True)
    return site


def dist_info(site: Path, name: str, version: str, files: Mapping[str, bytes] | None = None, *,
              record: str | None = None, installer: str = "pip", extra: Mapping[str, str] | None = None) -> Path:
    """An installed distribution, written by hand; answers its dist-info folder. `record` replaces the right RECORD."""
    folder = site / f"{name}-{version}.dist-info"
    for inside, body in (files or {}).items():
        write(site, inside, body)
    rows = "".join(f"{inside},{record_hash(body)},{len(body)}\n" for inside, body in (files or {}).items())
    write(folder, "METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    write(folder, "RECORD", rows if record is None else record)
    write(folder, "INSTALLER", f"{installer}\n")
    for inside, text in (extra or {}).items():
        write(folder, inside, text)
    return folder


def conda_package(prefix: Path, name: str, version: str, files: Mapping[str, bytes], *, build: str = "0",
                  written: bool = True, more: Mapping[str, Any] | None = None) -> Path:
    """A package installed by conda, written by hand; answers its conda-meta record."""
    for inside, body in files.items():
        if written:
            write(prefix, inside, body)
    paths = [{"_path": inside, "path_type": "hardlink", "size_in_bytes": len(body),
              "sha256": hashlib.sha256(body).hexdigest(), "sha256_in_prefix": hashlib.sha256(body).hexdigest()}
             for inside, body in files.items()]
    stated = {"name": name, "version": version, "build": build, "build_number": 0, "channel": "https://conda.test/main",
              "subdir": "linux-64", "depends": ["libgcc"], "files": list(files),
              "paths_data": {"paths": paths, "paths_version": 1}} | dict(more or {})
    return write(prefix, f"conda-meta/{name}-{version}-{build}.json", json.dumps(stated))
