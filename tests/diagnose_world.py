"""Small machines with an environment, written byte by byte, for tests of what a diagnosis says of them.

    world = World(tmp_path)
    world.wheel("nvidia-nvjitlink-cu12", "12.1.105", {"nvidia/nvjitlink/lib/libnvJitLink.so.12": lib(
        offers=("__nvJitLinkAddData_12_1@libnvJitLink.so.12",))})
    world.wheel("nvidia-cusparse-cu12", "12.1.0.106", {"nvidia/cusparse/lib/libcusparse.so.12": lib(
        needs=("libnvJitLink.so.12",), wants=("__nvJitLinkAddData_12_1@libnvJitLink.so.12",),
        runpath="$ORIGIN/../../nvjitlink/lib")})
    world.library("/usr/local/cuda-12.0/lib64/libnvJitLink.so.12", lib(offers=("__nvJitLinkAddData_12_0@…",)))
    world.environ(LD_LIBRARY_PATH="/usr/local/cuda-12.0/lib64")
    world.opens("nvidia/cusparse/lib/libcusparse.so.12")        # else the imports of its packages are simulated
    find_shadows(world.view())

Paths are those inside the machine, whose root is the folder given: the venv is /venv. What is written are real ELF
files: `world.really()` opens them with this machine's own loader.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stackfix.abi.books import open_books
from stackfix.diagnose.imports import simulate_imports
from stackfix.diagnose.loader import load
from stackfix.diagnose.records import OpenLibrary, ProcessState, StartProgram
from stackfix.diagnose.situation import Opening, Situation, View
from stackfix.inspect.elf_files import DiskFiles
from stackfix.inspect.environment import inspect_installation
from stackfix.inspect.environment_find import Found
from stackfix.inspect.ldso import read_conf, read_loader
from stackfix.inspect.machine import inspect_machine
from stackfix.inspect.places import Root
from stackfix.inspect.records import FileAt, LoaderEnvironment
from stackfix.matrix.library_records import Libraries, LibraryFamily
from stackfix.matrix.load import load_matrix
from tests.inspect_trees import conda_package, link, record_hash, write
from tests.loader_oracle.build import cache_of
from tests.loader_oracle.elf_writer import write as write_elf
from tests.loader_oracle.graph import Definition, Library, Reference

PYTHON = "3.11"
INTERPRETER = "/lib64/ld-linux-x86-64.so.2"
SYSTEM = "/usr/lib/x86_64-linux-gnu"
GLIBC = (2, 36)
OPENS = """
import ctypes, sys
for each in sys.argv[1:]:
    try:
        ctypes.CDLL(each, mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        print(error)
"""


def lib(*, needs: Sequence[str] = (), offers: Sequence[str] = (), wants: Sequence[str] = (),
        versions: Sequence[str] = (), **more: Any) -> Library:
    """A library without a path yet. Symbols are `name`, `name@version`; in `wants` also `name@version@file`.

    A wanted version that is a soname comes from that file. Others: rpath, runpath, flags, soname, machine, garbage.
    """
    defines = tuple(Definition(name=name, version=version or None)
                    for name, _, version in (each.partition("@") for each in offers))
    known = dict.fromkeys((*(each.version for each in defines if each.version), *versions))
    return Library(path="", needed=tuple(needs), defines=defines, versions=tuple(known),
                   refers=tuple(reference(each) for each in wants), **more)


def reference(text: str) -> Reference:
    """A wanted symbol."""
    name, _, rest = text.partition("@")
    version, _, file = rest.partition("@")
    return Reference(name=name, version=version or None, file=file or version or None)


def family(name: str, level: str, stems: str, symbols: str = "", projects: str = "", conda: str = "",
           *, one_per_process: bool = True) -> LibraryFamily:
    """A family of libraries; words are separated by spaces."""
    return LibraryFamily(name=name, level=level, stems=tuple(stems.split()), symbols=tuple(symbols.split()),
                         projects=tuple(projects.split()), conda=tuple(conda.split()),
                         one_per_process=one_per_process, source="tests", confidence="certain")


LIBRARIES = Libraries(families=(
    family("CUDA driver", "driver", "libcuda", "cu"),
    family("NVML", "driver", "libnvidia-ml", "nvml"),
    family("CUDA runtime", "cuda", "libcudart", "cuda", "nvidia-cuda-runtime", "cuda-cudart"),
    family("nvJitLink", "cuda", "libnvJitLink", "__nvJitLink nvJitLink", "nvidia-nvjitlink", "libnvjitlink"),
    family("cuBLAS", "cuda", "libcublas libcublasLt", "cublas", "nvidia-cublas", "libcublas"),
    family("cuSPARSE", "cuda", "libcusparse", "cusparse", "nvidia-cusparse", "libcusparse"),
    family("cuSPARSELt", "cuda", "libcusparseLt", "cusparseLt", "nvidia-cusparselt", "cusparselt"),
    family("cuSOLVER", "cuda", "libcusolver libcusolverMg", "cusolver", "nvidia-cusolver", "libcusolver"),
    family("cuFFT", "cuda", "libcufft", "cufft", "nvidia-cufft", "libcufft"),
    family("cuRAND", "cuda", "libcurand", "curand", "nvidia-curand", "libcurand"),
    family("NVRTC", "cuda", "libnvrtc libnvrtc-builtins", "nvrtc", "nvidia-cuda-nvrtc", "cuda-nvrtc"),
    family("CUPTI", "cuda", "libcupti", "cupti", "nvidia-cuda-cupti", "cuda-cupti"),
    family("NCCL", "cuda", "libnccl", "nccl", "nvidia-nccl", "nccl"),
    family("cuDNN", "cudnn", "libcudnn libcudnn_ops_infer libcudnn_cnn_infer libcudnn_cnn_train libcudnn_ops "
           "libcudnn_engines_tensor_ir", "cudnn", "nvidia-cudnn", "cudnn libcudnn"),
    family("torch", "torch", "libtorch libtorch_cpu libtorch_cuda libc10 libc10_cuda libtorch_python", "",
           "torch", "pytorch"),
), opened=(), imports=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """An opening that a test asks for."""

    request: OpenLibrary
    project: str | None
    what: str
    phase: str
    may_fail: str | None


class World:
    """A machine in a folder, with one environment."""

    def __init__(self, folder: Path, *, conda: bool = False, prefix: str | None = None) -> None:
        self.folder, self.conda_kind = folder, conda
        self.prefix = prefix or ("/opt/conda/envs/train" if conda else "/venv")
        self.site = f"{self.prefix}/lib/python{PYTHON}/site-packages"
        self.variables: dict[str, str] = {}
        self._cached: list[tuple[str, str]] = []
        self._wanted: list[Wanted] = []
        self._system()
        self.host(self.site).mkdir(parents=True)

    def host(self, path: str) -> Path:
        """Where a path of the machine lies on our disk."""
        return self.folder / path.lstrip("/")

    def _system(self) -> None:
        """The least that a Python starts with."""
        self.library(INTERPRETER, lib(soname="ld-linux-x86-64.so.2"))
        self.library(f"{SYSTEM}/libc.so.6", lib(offers=("dlopen", "exit@GLIBC_2.36"), versions=("GLIBC_2.2.5",)),
                     also=b"GNU C Library (tests) stable release version 2.36.\n")
        self.library(f"{SYSTEM}/libstdc++.so.6", lib(versions=("GLIBCXX_3.4", "GLIBCXX_3.4.30", "CXXABI_1.3.13")))
        self.library(f"{SYSTEM}/libgcc_s.so.1", lib(versions=("GCC_3.0", "GCC_12.0.0")))
        python = f"{self.prefix}/bin/python" if self.conda_kind else f"/usr/bin/python{PYTHON}"
        self.library(python, lib(needs=("libc.so.6",), rpath="$ORIGIN/../lib" if self.conda_kind else None),
                     interpreter=INTERPRETER)
        library = f"{self.prefix}/lib" if self.conda_kind else "/usr/lib"
        self.write(f"{library}/python{PYTHON}/os.py", "raise SystemExit('an inspected file was imported')\n")
        if self.conda_kind:
            conda_package(self.host(self.prefix), "python", f"{PYTHON}.2", {})
        else:
            link(self.folder, f"{self.prefix}/bin/python".lstrip("/"), python)
            self.write(f"{self.prefix}/pyvenv.cfg",
                       f"home = /usr/bin\ninclude-system-site-packages = false\nversion = {PYTHON}.2\n")

    # --- what lies where ---

    def write(self, path: str, content: str | bytes = "") -> World:
        """Any file of the machine."""
        write(self.folder, path.lstrip("/"), content)
        return self

    def link(self, path: str, target: str) -> World:
        """A symbolic link of the machine."""
        link(self.folder, path.lstrip("/"), target)
        return self

    def remove(self, path: str) -> World:
        """Take a file away again, as a broken installation does: its RECORD still has it."""
        self.host(self.inside(path)).unlink()
        return self

    def library(self, path: str, library: Library, *, interpreter: str | None = None, also: bytes = b"") -> World:
        """A library that no installer knows, at a path of the machine or below the site folder."""
        path = self.inside(path)
        self.write(path, elf_bytes(path, library, interpreter) + also)
        self.host(path).chmod(0o755)
        return self

    def inside(self, path: str) -> str:
        """An absolute path of the machine; relative ones are below the site folder."""
        return path if path.startswith("/") else f"{self.site}/{path}"

    def wheel(self, name: str, version: str, files: Mapping[str, Library | bytes | str] | None = None, *,
              requires: Sequence[str] = (), site: str | None = None, installer: str = "pip") -> World:
        """An installed distribution; files below the site folder. Installing it again replaces its metadata.

        What pip installed lies beside pip, as in an environment that Python's own venv made.
        """
        site = site or self.site
        if installer == "pip" != name and not any(self.host(self.site).glob("pip-*.dist-info")):
            self.wheel("pip", "24.0")
        contents = {inside: content_of(f"{site}/{inside}", content) for inside, content in (files or {}).items()}
        for old in self.host(site).glob(f"{name.replace('-', '_')}-*.dist-info/*"):
            old.unlink()
        for old in self.host(site).glob(f"{name.replace('-', '_')}-*.dist-info"):
            old.rmdir()
        info = f"{site}/{name.replace('-', '_')}-{version}.dist-info"
        for inside, body in contents.items():
            self.write(f"{site}/{inside}", body)
        lines = "".join(f"Requires-Dist: {each}\n" for each in requires)
        self.write(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{lines}")
        self.write(f"{info}/INSTALLER", f"{installer}\n")
        self.write(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-manylinux1_x86_64\n")
        self.write(f"{info}/RECORD", "".join(
            f"{inside},{record_hash(body)},{len(body)}\n" for inside, body in contents.items()))
        return self

    def conda(self, name: str, version: str, files: Mapping[str, Library | bytes | str] | None = None,
              **more: Any) -> World:
        """A package installed by conda; files below the prefix."""
        contents = {inside: content_of(f"{self.prefix}/{inside}", content) for inside, content in (files or {}).items()}
        conda_package(self.host(self.prefix), name, version, contents, **more)
        return self

    def cached(self, *paths: str, conf: str = "cuda.conf") -> World:
        """Put libraries into ld.so.cache, their folders into a file of /etc/ld.so.conf.d."""
        self._cached += [(path.rpartition("/")[2], path) for path in paths]
        self.write("/etc/ld.so.cache", cache_of(self._cached))
        self.write("/etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n")
        folders = dict.fromkeys(path.rpartition("/")[0] for path in paths)
        self.write(f"/etc/ld.so.conf.d/{conf}", "".join(f"{each}\n" for each in folders))
        return self

    def toolkit(self, path: str, version: str) -> World:
        """What makes a folder a CUDA toolkit: put its libraries into lib64."""
        self.write(f"{path}/version.json", f'{{"cuda": {{"name": "CUDA SDK", "version": "{version}"}}}}')
        self.write(f"{path}/bin/nvcc", "")
        return self

    def environ(self, **variables: str) -> World:
        """Variables of the process."""
        self.variables |= variables
        return self

    def opens(self, name: str, *, project: str | None = None, what: str | None = None, phase: str = "import",
              may_fail: str | None = None, to_global: bool = False, caller: str | None = None) -> World:
        """One dlopen, in place of the simulated imports. A name with a slash is a path, below the site folder."""
        path = self.inside(name) if "/" in name else name
        by = self.inside(caller) if caller else None
        self._wanted.append(Wanted(request=OpenLibrary(name=path, to_global=to_global, caller=by), project=project,
                                   what=what or name, phase=phase, may_fail=may_fail))
        return self

    def opens_nothing(self) -> World:
        """Forget what was to be opened."""
        self._wanted.clear()
        return self

    # --- what is to be judged ---

    def view(self, libraries: Libraries = LIBRARIES, **more: Any) -> View:
        """The view of it; `more` replaces fields."""
        root = Root(str(self.folder))
        found = Found(prefix=self.prefix, found_via="--prefix", executable=None)
        environment, installed = inspect_installation(root, self.variables, found)
        machine = read_loader(root, machine="x86_64", cpu_flags=(), glibc=GLIBC)
        conda = self.prefix if self.conda_kind else None
        situation = Situation(
            environment=environment, configured=read_conf(root),
            machine=inspect_machine(root, self.variables, cache=machine.cache, conda_prefix=conda, nvidia_smi=None),
            loader=LoaderEnvironment(machine=machine, cwd="/", library_path=self.variables.get("LD_LIBRARY_PATH"),
                                     preload=self.variables.get("LD_PRELOAD")))
        files = DiskFiles(root)
        before, openings = simulate_imports(situation, libraries, files) if not self._wanted else (
            start(f"{self.prefix}/bin/python", situation.loader, files), ())
        view = View(situation=situation, libraries=libraries, load_matrix=load_matrix, load_books=open_books,
                    files=files, installed=installed, start=before, openings=openings)
        return replace(view, openings=(*openings, *open_all(view, self._wanted)), **more)

    def really(self) -> str:
        """What this machine's own loader says to the openings, errors line by line, with the paths of the machine."""
        folder = str(self.folder)
        environ = {"PATH": os.environ.get("PATH", "")}
        for name in ("LD_LIBRARY_PATH", "LD_PRELOAD"):
            if name in self.variables:
                environ[name] = ":".join(f"{folder}{each}" for each in self.variables[name].split(":"))
        opened = [f"{folder}{each.request.name}" for each in self._wanted if "/" in each.request.name]
        done = subprocess.run([sys.executable, "-S", "-c", OPENS, *opened], env=environ, capture_output=True, text=True,
                              check=True, timeout=60)
        return done.stdout.replace(folder, "")


def elf_bytes(path: str, library: Library, interpreter: str | None = None) -> bytes:
    """The file of a library; its soname is its file's name, unless it has another or is a Python module."""
    name = path.rpartition("/")[2]
    soname = library.soname or (name if name.startswith("lib") else None)
    return write_elf(replace(library, path=path, soname=soname), interpreter=interpreter)


def content_of(path: str, content: Library | bytes | str) -> bytes:
    if isinstance(content, Library):
        return elf_bytes(path, content)
    return content.encode() if isinstance(content, str) else content


def start(program: str, environment: LoaderEnvironment, files: DiskFiles) -> ProcessState:
    """The interpreter's process before any import."""
    outcome = load(StartProgram(path=program), ProcessState(), environment, files)
    if outcome.failure is not None:
        raise AssertionError(outcome.failure.message())
    return outcome.state


def open_all(view: View, wanted: Sequence[Wanted]) -> Sequence[Opening]:
    """The openings asked for, one after the other, as the simulated imports do it."""
    found, state = list[Opening](), view.start
    for each in wanted:
        request = replace(each.request, caller=identity(view, each.request.caller))
        outcome = load(request, state, view.situation.loader, view.files, keep_going=True)
        found.append(Opening(project=each.project, what=each.what, phase=each.phase, request=request, outcome=outcome,
                             may_fail=each.may_fail))
        state = outcome.attempted
    return found


def identity(view: View, path: str | None) -> str | None:
    """The file behind a path."""
    at = view.files.at(path) if path else None
    return at.identity if isinstance(at, FileAt) else None
