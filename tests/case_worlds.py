"""Machines of public reports: torch with all that it requires, installed as pip does it, in small real ELF files.

    world = World(tmp_path)
    install_torch(world, "2.5.1", nvjitlink="12.4.127")     # its pins come from the matrix
    judge(say, world).serious                               # what the whole command says above a note

Sonames, folders, RPATH and RUNPATH, symbols and their versions are those of the wheels on the package index.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from packaging.requirements import Requirement
from packaging.version import Version

from stackfix.matrix.load import load_matrix
from stackfix.matrix.query import builds
from stackfix.matrix.records import TorchBuild
from tests.cli_world import Say
from tests.diagnose_world import PYTHON, World, lib
from tests.loader_oracle.graph import Library

TAG = "cpython-311-x86_64-linux-gnu.so"
MARKERS = {"platform_system": "Linux", "platform_machine": "x86_64", "sys_platform": "linux", "extra": "",
           "python_version": PYTHON, "python_full_version": f"{PYTHON}.2"}
FOLDERS = re.compile(r"(?:[^\s/:]*/)+(?=[^/\s])")
RAISED = re.compile(r"^\w*(?:Error|Exception): ")


# --- the command ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What `stackfix check --json` says of a machine."""

    status: int
    document: Any

    @property
    def findings(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.document["findings"]
        return found

    @property
    def serious(self) -> list[dict[str, Any]]:
        """Above a note."""
        return [each for each in self.findings if each["severity"] != "note"]

    @property
    def codes(self) -> list[str]:
        return [each["code"] for each in self.serious]

    def only(self, code: str, *beside: str) -> dict[str, Any]:
        """The one finding of this code; others above a note may only be those `beside`."""
        of_code = [each for each in self.findings if each["code"] == code]
        told = [(each["code"], each["severity"], each["summary"]) for each in self.serious]
        assert len(of_code) == 1, told
        assert {each["code"] for each in self.serious} <= {code, *beside}, told
        return of_code[0]


def judge(say: Say, world: World, *words: str) -> Judged:
    """The whole command, in this process."""
    variables = [word for name, value in world.variables.items() for word in ("--env", f"{name}={value}")]
    said = say("check", "--root", world.folder, "--prefix", world.prefix, *variables, "--json", *words)
    assert said.err == "", said
    return Judged(status=said.status, document=said.json)


def is_clean(say: Say, world: World) -> bool:
    """Whether nothing above a note is said."""
    judged = judge(say, world)
    told = [(each["code"], each["severity"], each["summary"], each["evidence"]) for each in judged.serious]
    assert (judged.status, told) == (0, [])
    return True


def bare(error: str) -> str:
    """An error line without the folders of its files and the name of the exception: those differ in each machine."""
    return FOLDERS.sub("", RAISED.sub("", error))


# --- what the wheels of NVIDIA have ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The libraries of one project of NVIDIA's. `{}` in a name is the CUDA major, or what `numbers` says for it."""

    folder: str
    names: tuple[str, ...]
    numbers: Mapping[int, str] | None = None
    offers: tuple[str, ...] = ()            # of the first library
    versioned: bool = True                  # symbols carry the soname as their version
    needs: Mapping[str, tuple[str, ...]] | None = None
    runpath: str = "$ORIGIN"


CUDNN_8 = ("", "_ops_infer", "_ops_train", "_cnn_infer", "_cnn_train", "_adv_infer", "_adv_train")
CUDNN_9 = ("", "_graph", "_ops", "_cnn", "_adv", "_engines_precompiled", "_engines_runtime_compiled", "_heuristic")
CUDNN_8_NEEDS = {"_ops_train": ("_ops_infer",), "_cnn_infer": ("_ops_infer",), "_adv_infer": ("_ops_infer",),
                 "_cnn_train": ("_ops_infer", "_ops_train", "_cnn_infer"),
                 "_adv_train": ("_ops_infer", "_ops_train", "_adv_infer")}
CUDNN_RUNPATH = "$ORIGIN:$ORIGIN/../../cublas/lib:$ORIGIN/../../nvrtc/lib"
PARTS = {
    "cublas": Part(folder="cublas", names=("libcublas.so.{}", "libcublasLt.so.{}", "libnvblas.so.{}"),
                   offers=("cublasCreate_v2",), needs={"libcublas": ("libcublasLt",), "libnvblas": ("libcublas",)}),
    "cuda-runtime": Part(folder="cuda_runtime", names=("libcudart.so.{}",), numbers={11: "11.0"},
                         offers=("cudaMalloc",)),
    "cuda-cupti": Part(folder="cuda_cupti", names=("libcupti.so.{}", "libnvperf_host.so"), numbers={11: "11.7"}),
    "cuda-nvrtc": Part(folder="cuda_nvrtc", names=("libnvrtc.so.{}",), numbers={11: "11.2"},
                       offers=("nvrtcCompileProgram",)),
    "cufft": Part(folder="cufft", names=("libcufft.so.{}", "libcufftw.so.{}"),
                  numbers={11: "10", 12: "11", 13: "12"}, offers=("cufftCreate",),
                  needs={"libcufftw": ("libcufft",)}),
    "curand": Part(folder="curand", names=("libcurand.so.10",), offers=("curandCreateGenerator",)),
    "cusolver": Part(folder="cusolver", names=("libcusolver.so.{}",), numbers={11: "11", 12: "11", 13: "12"},
                     offers=("cusolverDnCreate",)),
    "cusparse": Part(folder="cusparse", names=("libcusparse.so.{}",), numbers={13: "12"},
                     offers=("cusparseCreate",)),
    "nvjitlink": Part(folder="nvjitlink", names=("libnvJitLink.so.{}",)),
    "nvtx": Part(folder="nvtx", names=("libnvToolsExt.so.1",), offers=("nvtxRangePushA",), versioned=False),
    "nccl": Part(folder="nccl", names=("libnccl.so.2",), versioned=False),
    "cufile": Part(folder="cufile", names=("libcufile.so.0", "libcufile_rdma.so.1"), offers=("cuFileDriverOpen",)),
    "cusparselt": Part(folder="cusparselt", names=("libcusparseLt.so.0",), offers=("cusparseLtInit",),
                       versioned=False),
    "nvshmem": Part(folder="nvshmem", names=("libnvshmem_host.so.3",), offers=("nvshmemx_init",)),
    "cudnn": Part(folder="cudnn", names=()),
}
# cuSPARSE -> the CUDA minor whose nvJitLink functions it takes, read from its undefined symbols
CUSPARSE_WANTS = {"12.1.0.106": 1, "12.1.2.141": 2, "12.1.3.153": 3, "12.3.1.170": 4, "12.5.1.3": 5, "12.5.4.2": 6,
                  "12.5.8.93": 8, "12.5.10.65": 9}
FIRST_MISSED = {4: "Complete", 9: "GetErrorLogSize"}      # what the loader's message names, as reported
NVJITLINK_FUNCTIONS = ("AddData", "Complete", "Create", "Destroy", "GetErrorLogSize", "GetErrorLog",
                       "GetLinkedCubinSize", "GetLinkedCubin")
NCCL_BROUGHT = {"2.19.3": ("ncclCommDeregister", "ncclCommRegister"),
                "2.27.3": ("ncclCommWindowDeregister", "ncclCommWindowRegister"),
                "2.28.3": ("ncclAlltoAll", "ncclDevCommCreate", "ncclDevCommDestroy"),
                "2.29.7": ("ncclCommMemStats", "ncclCommResume", "ncclCommSuspend")}
CUPTI_BROUGHT = {"12.5": ("cuptiActivityEnableDriverApi", "cuptiActivityEnableRuntimeApi")}
REQUIRES = {"cusparse": ("nvjitlink",), "cusolver": ("cublas", "nvjitlink", "cusparse"), "cudnn": ("cublas",),
            "cufft": ("nvjitlink",)}


def of_minor(minor: int, *first: str, major: int = 12) -> tuple[str, ...]:
    """The functions of nvJitLink that a cuSPARSE takes, those named first: the loader reports the first it misses."""
    ordered = (*first, *(each for each in NVJITLINK_FUNCTIONS if each not in first))
    return tuple(f"__nvJitLink{each}_{major}_{minor}" for each in ordered)


def nvjitlink(version: str) -> Library:
    """nvJitLink: each minor adds functions of its own to those of all before."""
    major, minor = (int(each) for each in version.split(".")[:2])
    soname = f"libnvJitLink.so.{major}"
    return lib(offers=[f"{name}@{soname}" for each in range(minor + 1) for name in of_minor(each, major=major)])


def cusparse(minor: int | None, *first: str) -> Library:
    """cuSPARSE, with the functions that it takes of nvJitLink."""
    soname = "libnvJitLink.so.12"
    wants = [f"{name}@{soname}" for name in of_minor(minor, *first)] if minor is not None else []
    return lib(needs=(soname,) if wants else (), wants=wants, offers=("cusparseCreate@libcusparse.so.12",),
               runpath="$ORIGIN:$ORIGIN/../../nvjitlink/lib")


def cusolver(major: int) -> Library:
    """cuSOLVER of CUDA 12 or 13, where its own number is one less."""
    return lib(needs=(f"libnvJitLink.so.{major}", "libcusparse.so.12", f"libcublas.so.{major}",
                      f"libcublasLt.so.{major}"), offers=(f"cusolverDnCreate@libcusolver.so.{major - 1}",),
               wants=(f"cublasCreate_v2@libcublas.so.{major}",),
               runpath="$ORIGIN:$ORIGIN/../../cublas/lib:$ORIGIN/../../nvjitlink/lib:$ORIGIN/../../cusparse/lib")


def cudnn(version: str) -> Iterator[tuple[str, Library]]:
    """The libraries of cuDNN 8 or 9."""
    release = Version(version)
    if release.major == 8:
        for part in CUDNN_8:
            yield f"libcudnn{part}.so.8", lib(
                needs=tuple(f"libcudnn{each}.so.8" for each in CUDNN_8_NEEDS.get(part, ())),
                offers=(f"cudnn{part}GetVersion@libcudnn{part}.so.8",), runpath=CUDNN_RUNPATH if part else "$ORIGIN")
        return
    parts = (*CUDNN_9, *(("_engines_tensor_ir",) if release >= Version("9.21") else ()))
    for part in parts:
        yield f"libcudnn{part}.so.9", lib(offers=(f"cudnn{part}GetVersion@libcudnn{part}.so.9",), runpath="$ORIGIN")


def brought(table: Mapping[str, tuple[str, ...]], version: str) -> tuple[str, ...]:
    """What a library has from some versions on."""
    return tuple(name for since, names in table.items() if Version(version) >= Version(since) for name in names)


def split(project: str) -> tuple[str, int]:
    """("cublas", 12) of "nvidia-cublas-cu12"; wheels of the CUDA 13 toolkit have no suffix."""
    name, _, major = project.removeprefix("nvidia-").partition("-cu1")
    return (name, 10 + int(major)) if major else (name, 13)


def nvidia_files(project: str, version: str) -> dict[str, Library]:
    """The libraries of one wheel, by their place below the site folder."""
    name, major = split(project)
    part = PARTS[name]
    in_one = major == 13 and not project.endswith("-cu13")
    folder = "nvidia/cu13/lib" if in_one else f"nvidia/{part.folder}/lib"
    if name == "cusparselt" and Version(version) < Version("0.6.3"):
        folder = "cusparselt/lib"                       # beside nvidia/, not below
    return {f"{folder}/{file}": library for file, library in libraries_of(name, major, version)}


def libraries_of(name: str, major: int, version: str) -> Iterator[tuple[str, Library]]:
    """(soname, library)."""
    if name == "cudnn":
        yield from cudnn(version)
        return
    part = PARTS[name]
    number = (part.numbers or {}).get(major, str(major))
    special: dict[str, Library] = {}
    if name == "nvjitlink":
        special[f"libnvJitLink.so.{major}"] = nvjitlink(version)
    elif name == "cusparse" and major == 12:
        minor = CUSPARSE_WANTS[version]
        special["libcusparse.so.12"] = cusparse(minor, FIRST_MISSED.get(minor, "AddData"))
    elif name == "cusolver" and major > 11:
        special[f"libcusolver.so.{number}"] = cusolver(major)
    elif name == "nccl":
        special["libnccl.so.2"] = lib(offers=("ncclSend", *brought(NCCL_BROUGHT, version)))
    elif name == "cuda-cupti":
        soname = f"libcupti.so.{number}"
        special[soname] = lib(offers=[f"{each}@{soname}" for each in (
            "cuptiActivityEnable", *brought(CUPTI_BROUGHT, version))])
    elif name == "cuda-nvrtc":
        yield f"libnvrtc-builtins.so.{'.'.join(version.split('.')[:2])}", lib(offers=("__nvrtc_builtins",))
    for text in part.names:
        soname = text.format(number)
        if name == "nvtx" and major == 13:
            soname = "libnvtx3interop.so.1"
        stem = soname.partition(".so")[0]
        version_of = f"@{soname}" if part.versioned else ""
        first = text == part.names[0]
        yield soname, special.get(soname) or lib(
            needs=tuple(f"{each}.so.{number}" for each in (part.needs or {}).get(stem, ())), runpath=part.runpath,
            offers=[f"{each}{version_of}" for each in (part.offers if first else ())] or (f"{stem[3:]}_version",))


def linked(files: Mapping[str, Library]) -> dict[str, Library]:
    """The same libraries, linked against the C library as all of them are."""
    return {path: replace(library, needed=(*library.needed, "libc.so.6")) for path, library in files.items()}


def install_nvidia(world: World, project: str, version: str, *, site: str | None = None, **libraries: Library) -> World:
    """One wheel of NVIDIA's. `libraries` replaces some by their stem: libcusparse=lib(…)."""
    name, major = split(project)
    files = {path: libraries.get(path.rpartition("/")[2].partition(".so")[0], library)
             for path, library in nvidia_files(project, version).items()}
    suffix = f"-cu{major}" if major < 13 else ""
    return world.wheel(project, version, linked(files), site=site,
                       requires=[f"nvidia-{each}{suffix}" for each in REQUIRES.get(name, ()) if major > 11])


# --- torch ---

CHECK_OLD = "_ZN3c106detail14torchCheckFailEPKcS2_jRKSs"
CHECK_NEW = "_ZN3c106detail14torchCheckFailEPKcS2_jRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
SET_DEVICE = "_ZN3c104cuda9SetDeviceE"
STATE = "_ZN3c1013AutogradState13get_tls_stateEv"        # in each of them
TO_DTYPE_LAYOUT = "_ZN2at4_ops15to_dtype_layout4callERKNS_6TensorE"
C10_OPTIONAL = (f"{TO_DTYPE_LAYOUT}N3c108optionalINS5_10ScalarTypeEEENS6_INS5_6LayoutEEENS6_INS5_6DeviceEEENS6_IbEEbb"
                "NS6_INS5_12MemoryFormatEEE")
STD_OPTIONAL = (f"{TO_DTYPE_LAYOUT}St8optionalIN3c1010ScalarTypeEES5_INS6_6LayoutEES5_INS6_6DeviceEES5_IbEbb"
                "S5_INS6_12MemoryFormatEE")
# which wheels torch's own libraries have in their RPATH, in this order
RPATHS = {
    "2.1": "cublas cuda_cupti cuda_nvrtc cuda_runtime cudnn cufft curand cusolver cusparse nccl nvtx",
    "2.5": "cublas cuda_cupti cuda_nvrtc cuda_runtime cudnn cufft curand cusolver cusparse nccl nvtx nvjitlink",
    "2.6": "cublas cuda_cupti cuda_nvrtc cuda_runtime cudnn cufft curand cusolver cusparse ../cusparselt nccl nvtx "
           "nvjitlink",
    "2.7": "cublas cuda_cupti cuda_nvrtc cuda_runtime cudnn cufft curand cusolver cusparse cusparselt nccl nvtx "
           "nvjitlink cufile",
    "2.11": "cudnn nvshmem nccl cusparselt cu13",
}


def minor_of(version: str) -> tuple[int, int]:
    release = Version(version)
    return release.major, release.minor


def since(table: Mapping[str, str], version: str) -> str:
    """The entry of the newest key that is not newer than a version."""
    return [value for key, value in table.items() if minor_of(key) <= minor_of(version)][-1]


def set_device(version: str) -> str:
    """c10::cuda::SetDevice of a torch: it took an int, then a device index, then also a flag."""
    minor = minor_of(version)
    return SET_DEVICE + ("i" if minor < (2, 3) else "a" if minor < (2, 8) else "ab")


def of_torch(version: str, *, new_strings: bool | None = None) -> dict[str, tuple[str, ...]]:
    """What torch's libraries export, as far as the reports turn on it."""
    minor = minor_of(version)
    new = minor >= (2, 7) if new_strings is None else new_strings
    return {"libc10": (STATE, CHECK_NEW if new else CHECK_OLD), "libc10_cuda": (set_device(version),),
            "libtorch_cpu": (C10_OPTIONAL if minor < (2, 2) else STD_OPTIONAL,)}


def cuda_libraries(version: str) -> dict[str, str]:
    """Sonames of the CUDA libraries that a torch of the default index needs, by their stem."""
    minor = minor_of(version)
    of_major = {"cublas": "12", "cublasLt": "12", "cudart": "12", "cufft": "11", "curand": "10", "cusolver": "11",
                "cusparse": "12", "nccl": "2", "cupti": "12", "cudnn": "8" if minor < (2, 4) else "9"}
    if minor >= (2, 11):
        of_major |= {"cublas": "13", "cublasLt": "13", "cudart": "13", "cufft": "12", "cusolver": "12", "cupti": "13"}
    if minor < (2, 5):
        of_major["nvToolsExt"] = "1"
    if minor >= (2, 6):
        of_major["cusparseLt"] = "0"
    if minor >= (2, 8):
        of_major["cufile"] = "0"
    if minor >= (2, 11):
        of_major["nvshmem_host"] = "3"
    return {stem: f"lib{stem}.so.{number}" for stem, number in of_major.items()}


def rpath_of(version: str) -> str:
    """The RPATH of torch's own libraries."""
    folders = (f"$ORIGIN/../../nvidia/{each}/lib" for each in since(RPATHS, version).split())
    return ":".join((*(each.replace("/nvidia/../", "/") for each in folders), "$ORIGIN"))


def torch_libraries(version: str, rpath: str | None = None) -> dict[str, Library]:
    """Files of a torch for CUDA 12 or 13, by their place below the site folder. `rpath` in place of the release's."""
    minor, cuda, offers = minor_of(version), cuda_libraries(version), of_torch(version)
    rpath = rpath or rpath_of(version)
    nvtx = tuple(filter(None, (cuda.get("nvToolsExt"),)))
    bundled = "libcusparseLt-f80c68d1.so.0" if (2, 2) <= minor < (2, 6) else None
    cupti = ("cuptiActivityEnable", *(CUPTI_BROUGHT["12.5"] if minor >= (2, 8) else ()))
    of_cuda = [cuda[each] for each in cuda if each not in ("cupti", "cusolver", "nccl")]
    own = {
        "libc10": lib(offers=offers["libc10"]),
        "libc10_cuda": lib(needs=("libc10.so", cuda["cudart"]), offers=offers["libc10_cuda"],
                           wants=(f"cudaMalloc@{cuda['cudart']}",)),
        "libtorch_cpu": lib(needs=("libc10.so", cuda["cupti"], cuda["cudart"]), offers=offers["libtorch_cpu"],
                            wants=[f"{each}@{cuda['cupti']}" for each in cupti]),
        "libtorch_cuda": lib(needs=("libc10_cuda.so", *of_cuda, *filter(None, (bundled,)), cuda["nccl"], "libc10.so",
                                    "libtorch_cpu.so"), wants=wanted_of_cuda(version, cuda)),
        "libtorch_cuda_linalg": lib(needs=("libtorch_cpu.so", "libtorch_cuda.so", cuda["cusolver"], cuda["cublas"]),
                                    wants=(f"cusolverDnCreate@{cuda['cusolver']}",)),
        "libtorch": lib(needs=("libtorch_cpu.so", "libtorch_cuda.so")),
        "libshm": lib(needs=("libtorch_cpu.so",)),
        "libtorch_python": lib(needs=("libshm.so", "libtorch.so", *nvtx, "libtorch_cpu.so", "libtorch_cuda.so",
                                      cuda["cudart"], cuda["cudnn"])),
        "libtorch_global_deps": lib(needs=(cuda["cudart"], *nvtx)),
    }
    files = {f"torch/lib/{stem}.so": replace(library, rpath=rpath) for stem, library in own.items()}
    if bundled:
        files[f"torch/lib/{bundled}"] = lib()
    return files | {f"torch/_C.{TAG}": lib(needs=("libtorch_python.so",), rpath=":".join(
        (rpath.replace("/../..", "/.."), "$ORIGIN/lib")))}


def wanted_of_cuda(version: str, cuda: Mapping[str, str]) -> Sequence[str]:
    """What libtorch_cuda.so takes from other libraries; NCCL's functions as the releases came to need them."""
    minor = minor_of(version)
    nccl = ["ncclSend"]
    for first, since_nccl in (((2, 2), "2.19.3"), ((2, 8), "2.27.3"), ((2, 11), "2.28.3"), ((2, 12), "2.29.7")):
        nccl += NCCL_BROUGHT[since_nccl][::-1] if minor >= first else ()
    functions = {"cublas": "cublasCreate_v2", "cusparse": "cusparseCreate", "cufft": "cufftCreate",
                 "curand": "curandCreateGenerator", "cudart": "cudaMalloc"}
    return [*(f"{name}@{cuda[stem]}" for stem, name in functions.items()), *nccl]


def build_of(version: str) -> TorchBuild:
    """The wheel of the default index."""
    return next(each for each in builds(load_matrix(), platform="linux-64", index="default")
                if each.version == version)


def required(lines: Sequence[str]) -> Iterator[Requirement]:
    """Requirements that hold on such a machine."""
    for line in lines:
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate(MARKERS):
            yield requirement


PLAIN = {"filelock": "3.15.4", "typing-extensions": "4.12.2", "sympy": "1.13.3", "networkx": "3.3", "jinja2": "3.1.4",
         "fsspec": "2024.6.0", "setuptools": "75.0.0", "cuda-bindings": "13.0.3"}


def version_for(requirement: Requirement, chosen: Mapping[str, str]) -> str:
    """The version that is installed for a requirement."""
    exact = next((each.version for each in requirement.specifier if each.operator == "=="), None)
    most = next((each.version for each in requirement.specifier if each.operator == "<="), None)
    return chosen.get(requirement.name) or exact or most or PLAIN[requirement.name]


def install_torch(world: World, version: str, *, local: str = "", libraries: Mapping[str, Library] | None = None,
                  rpath: str | None = None, site: str | None = None, nvidia_site: str | None = None,
                  **chosen: str) -> World:
    """torch of the default index with all that it requires, in `site` and, for the rest, `nvidia_site`.

    `libraries` replaces libraries of torch's own by their stem. `chosen`: other versions of wheels than its pins,
    nvjitlink="12.4.127"; "" leaves a wheel out.
    """
    build = build_of(version)
    wanted = {f"nvidia-{name.replace('_', '-')}-cu12": each for name, each in chosen.items()}
    own = {path: (libraries or {}).get(stem_of(path), library) for path, library in torch_libraries(
        version, rpath).items()}
    world.wheel("torch", version + local, {
        **linked(own), "torch/__init__.py": "", "torch/version.py": f"__version__ = '{version}{local}'\n"},
        requires=build.requires, site=site)
    pending, done = [*required(build.requires)], set[str]()
    if minor_of(version) < (2, 5):
        pending.append(Requirement("nvidia-nvjitlink-cu12==12.1.105"))      # no pin of torch's: what a lock would take
    while pending:
        requirement = pending.pop(0)
        name = requirement.name
        if name in done or wanted.get(name) == "":
            continue
        done.add(name)
        chosen_version = "" if name == "cuda-toolkit" else version_for(requirement, wanted)
        if name == "cuda-toolkit":
            pending += toolkit(world, requirement)
        elif name.startswith("nvidia-"):
            install_nvidia(world, name, chosen_version, site=nvidia_site)
        else:
            files = linked({"triton/_C/libtriton.so": lib()}) if name == "triton" else {}
            world.wheel(name, chosen_version, files, site=nvidia_site)
    return world


def stem_of(path: str) -> str:
    """"libc10" of torch/lib/libc10.so."""
    return path.rpartition("/")[2].partition(".so")[0].partition(".cpython")[0]


def toolkit(world: World, requirement: Requirement) -> Iterator[Requirement]:
    """cuda-toolkit, and what its extras require."""
    release = next(iter(requirement.specifier)).version
    parts = {each.package: each.version for each in load_matrix().components if each.toolkit == release}
    extras = {"cudart": "cuda-runtime", "cupti": "cuda-cupti", "nvrtc": "cuda-nvrtc"}
    lines = {extra: f"nvidia-{extras.get(extra, extra)}" for extra in sorted(requirement.extras)}
    world.wheel("cuda-toolkit", release, requires=[
        f"{name}=={parts[name]}.*; extra == '{extra}'" for extra, name in lines.items()])
    for name in lines.values():
        yield Requirement(f"{name}=={parts[name]}")
