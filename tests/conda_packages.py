"""Conda packages built on the spot: a Python, a package with libraries that LD_LIBRARY_PATH can break, and a toolkit.

`python` is a copy of the base interpreter of the running one, with the part of its standard library that the tests
import: getpath finds lib/pythonX.Y/os.py above bin, so sys.prefix is the conda prefix.
faketorch/_C.abi3.so -> libcusparse.so.12 (RUNPATH) -> libnvJitLink.so.12 (RUNPATH, which LD_LIBRARY_PATH beats)
"""

from __future__ import annotations

import bz2
import hashlib
import io
import json
import platform
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.hook_world import EXTENSION

SUBDIR = {"x86_64": "linux-64", "aarch64": "linux-aarch64"}.get(platform.machine(), "noarch")
NAME = f"python{sys.version_info[0]}.{sys.version_info[1]}"
SITE = f"lib/{NAME}/site-packages"
VERSION = platform.python_version()
# Of the standard library its folders are packed into which these imports reach, and the compiled modules they take
CLOSURE = """
import sys, os
import ctypes.util, importlib.metadata, importlib.util, json, logging, math, random, resource, subprocess, zipfile
import encodings.ascii, encodings.latin_1, encodings.utf_8, array, secrets, tempfile, urllib.request
files = {getattr(each, '__file__', None) for each in tuple(sys.modules.values())} - {None}
base = os.path.dirname(os.path.realpath(os.__file__))
print(*sorted(each for each in map(os.path.realpath, files) if each.startswith(base + os.sep)), sep='\\n')
"""
# Debian's own site.py knows site-packages in a venv alone
DEBIAN = f"import os, site, sys\nsite.addsitedir(os.path.join(sys.prefix, {SITE!r}))\n"
JIT = "libnvJitLink.so.12"


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """What one archive holds; files and links below the prefix."""

    name: str
    version: str
    build: str = "0"
    depends: tuple[str, ...] = ()
    files: Mapping[str, bytes | Path] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)

    @property
    def file(self) -> str:
        return f"{self.name}-{self.version}-{self.build}.tar.bz2"

    def archive(self) -> bytes:
        """The package as conda-build writes it, the old form: a tar with info/ in it."""
        rows, members = [], list[tuple[tarfile.TarInfo, bytes]]()
        for path, content in self.files.items():
            body, mode = content_of(content)
            rows.append({"_path": path, "path_type": "hardlink", "sha256": hashlib.sha256(body).hexdigest(),
                         "size_in_bytes": len(body)})
            members.append((member(path, len(body), mode), body))
        for path, target in self.links.items():
            rows.append({"_path": path, "path_type": "softlink", "sha256": hashlib.sha256(b"").hexdigest(),
                         "size_in_bytes": 0})
            members.append((member(path, 0, 0o777, target), b""))
        index = {"name": self.name, "version": self.version, "build": self.build, "build_number": 0, "subdir": SUBDIR,
                 "depends": list(self.depends), "arch": None, "platform": None}
        for path, document in (("info/index.json", index), ("info/paths.json", {"paths": rows, "paths_version": 1})):
            body = json.dumps(document).encode()
            members.append((member(path, len(body), 0o644), body))
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            for info, body in members:
                tar.addfile(info, io.BytesIO(body))
        return bz2.compress(packed.getvalue(), 1)


def content_of(content: bytes | Path) -> tuple[bytes, int]:
    if isinstance(content, bytes):
        return content, 0o644
    return content.read_bytes(), content.stat().st_mode & 0o755


def member(path: str, size: int, mode: int, target: str | None = None) -> tarfile.TarInfo:
    info = tarfile.TarInfo(path)
    info.size, info.mode, info.mtime = size, mode, 1_700_000_000
    if target is not None:
        info.type, info.linkname = tarfile.SYMTYPE, target
    return info


def python_package(folder: Path) -> Package:
    """The interpreter, and as much of its standard library as the tests import. `folder` is for what is stripped."""
    folder.mkdir()
    program = Path(sys._base_executable).resolve()      # type: ignore[attr-defined]   # noqa: SLF001 - CPython's own
    done = subprocess.run([str(program), "-I", "-c", CLOSURE], capture_output=True, text=True, check=True, timeout=60)
    library = Path(sysconfig.get_path("stdlib")).resolve()
    files: dict[str, bytes | Path] = {f"bin/{NAME}": stripped(program, folder)}
    loaded = [Path(line) for line in done.stdout.splitlines()]
    for path in {*loaded, *(file for each in loaded if each.suffix == ".py" for file in each.parent.glob("*.py"))}:
        files[f"lib/{NAME}/{path.relative_to(library)}"] = path
    shared = Path(sys.base_prefix) / "lib" / str(sysconfig.get_config_var("INSTSONAME"))
    if shared.suffix != ".a" and shared.is_file():
        files[f"lib/{shared.name}"] = stripped(shared, folder)
    if "dist-packages" in (library / "site.py").read_text(encoding="utf-8"):
        files[f"lib/{NAME}/sitecustomize.py"] = DEBIAN.encode()
    return Package(name="python", version=VERSION, files=files,
                   links={"bin/python": NAME, f"bin/{NAME[:7]}": NAME})


def stripped(program: Path, folder: Path) -> Path:
    """The program without what only debuggers read: 23 MB of it would be packed for nothing."""
    subprocess.run(["strip", "-o", str(folder / program.name), str(program)], check=True, timeout=60)
    return folder / program.name


def jit(folder: Path, minor: int) -> Path:
    """An nvJitLink of CUDA 12.minor: a library of one function, whose name tells the minor."""
    script = folder / "versions"
    script.write_text(f"{JIT} {{ global: *; }};\n")
    return gcc(folder / JIT, f"int __nvJitLinkAddData_12_{minor}(void) {{ return 42; }}",
               f"-Wl,--version-script={script}")


def gcc(target: Path, source: str, *more: str) -> Path:
    """A compiled library."""
    subprocess.run(["gcc", "-x", "c", "-", "-x", "none", "-shared", "-fPIC", f"-Wl,-soname,{target.name}", "-o",
                    str(target), "-Wl,--no-as-needed", "-Wl,--enable-new-dtags", *more],
                   input=source, text=True, check=True, timeout=120)
    return target


def stack_packages(folder: Path, build: str) -> Iterator[Package]:
    """nvJitLink, cuSPARSE and a package that needs both.

    build: "lib", all libraries in the one folder that conda has; "wheels", each in a folder of its own, as pip's are
    """
    folder.mkdir()
    in_lib = build == "lib"
    places = {each: "lib" if in_lib else f"{SITE}/nvidia/{each}/lib" for each in ("nvjitlink", "cusparse")}
    good = jit(folder, 1)
    sparse = gcc(folder / "libcusparse.so.12", "extern int __nvJitLinkAddData_12_1(void);"
                 "int sparse_run(void) { return __nvJitLinkAddData_12_1(); }", str(good),
                 f"-Wl,-rpath,$ORIGIN{'' if in_lib else '/../../nvjitlink/lib'}")
    module = gcc(folder / "_C.abi3.so", EXTENSION.replace("NAME", "_C"), str(sparse),
                 f"-Wl,-rpath,$ORIGIN/../{'../../' if in_lib else 'nvidia/cusparse/lib'}")
    yield Package(name="libnvjitlink", version="12.1.105", build=build, files={f"{places['nvjitlink']}/{JIT}": good})
    yield Package(name="libcusparse", version="12.1.0.106", build=build, depends=(f"libnvjitlink ==12.1.105 {build}",),
                  files={f"{places['cusparse']}/{sparse.name}": sparse})
    info = f"{SITE}/faketorch-1.0.dist-info"
    yield Package(name="faketorch", version="1.0", build=build, depends=(f"libcusparse ==12.1.0.106 {build}", "python"),
                  files={f"{SITE}/faketorch/__init__.py": b"from faketorch import _C\n",
                         f"{SITE}/faketorch/_C.abi3.so": module, f"{info}/INSTALLER": b"conda\n",
                         f"{info}/METADATA": b"Metadata-Version: 2.1\nName: faketorch\nVersion: 1.0\n",
                         f"{info}/RECORD": b""})


# As compilers' packages write them: one that is empty and one that is unset are the same to them
TOOLKIT = {
    "activate.d/zz-toolkit.sh": """
export _TOOLKIT_KEPT="${LD_LIBRARY_PATH-}"
export LD_LIBRARY_PATH="FOLDER${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
""",
    "deactivate.d/zz-toolkit.sh": """
export LD_LIBRARY_PATH="${_TOOLKIT_KEPT-}"
unset _TOOLKIT_KEPT
[ -n "$LD_LIBRARY_PATH" ] || unset LD_LIBRARY_PATH
""",
    "activate.d/zz-toolkit.fish": """
set -gx _TOOLKIT_KEPT "$LD_LIBRARY_PATH"
set -gx LD_LIBRARY_PATH (string join -n : "FOLDER" "$LD_LIBRARY_PATH")
""",
    "deactivate.d/zz-toolkit.fish": """
set -gx LD_LIBRARY_PATH "$_TOOLKIT_KEPT"
set -eg _TOOLKIT_KEPT
test -n "$LD_LIBRARY_PATH"; or set -eg LD_LIBRARY_PATH
""",
    "activate.d/zz-toolkit.csh": """
if (! $?LD_LIBRARY_PATH) setenv LD_LIBRARY_PATH ''
setenv _TOOLKIT_KEPT "$LD_LIBRARY_PATH:q"
if ("$LD_LIBRARY_PATH:q" == '') then
    setenv LD_LIBRARY_PATH "FOLDER"
else
    setenv LD_LIBRARY_PATH "FOLDER:$LD_LIBRARY_PATH:q"
endif
""",
    "deactivate.d/zz-toolkit.csh": """
setenv LD_LIBRARY_PATH "$_TOOLKIT_KEPT:q"
unsetenv _TOOLKIT_KEPT
if ("$LD_LIBRARY_PATH:q" == '') unsetenv LD_LIBRARY_PATH
""",
}


def toolkit_package(hostile: Path) -> Package:
    """A package whose scripts put the bad folder first, and put back what was there."""
    return Package(name="toolkit", version="12.0", files={
        f"etc/conda/{path}": text.replace("FOLDER", str(hostile)).encode() for path, text in TOOLKIT.items()})
