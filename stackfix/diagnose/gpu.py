"""Whether binaries hold code for the GPUs of this machine, and a torch that does not use them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from stackfix.diagnose.finding_records import Culprit, Finding, Requester
from stackfix.diagnose.gpu_archs import runs_on
from stackfix.diagnose.gpu_cures import other_builds, ways_out
from stackfix.diagnose.gpu_driver import check_driver_age
from stackfix.diagnose.installed_torch import CPU, InstalledTorch, installed_torch, numbers, platform_of
from stackfix.diagnose.machine_libraries import user_driver
from stackfix.diagnose.make_finding import make_finding
from stackfix.diagnose.situation import View
from stackfix.inspect.fatbin_records import UnreadableFatbin
from stackfix.inspect.machine_records import Undecided

GPU_LIBRARIES = ("libcudart.so", "libc10_cuda.so", "libtorch_cuda")
NVIDIA = ("nvidia-", "cuda-")
SBSA_ON_TEGRA = (38,)       # from L4T 38 (JetPack 7) on, wheels for servers run on Tegra's GPU too
NO_KERNEL = "CUDA error: no kernel image is available for execution on the device"
BAD_PTX = "CUDA error: the provided PTX was compiled with an unsupported toolchain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether the code of one file, or of one package by the matrix, runs on one GPU."""

    path: str | None
    capability: str
    answer: str                     # "native", "jit", "no", "no-code", "cannot-tell"
    archs: tuple[str, ...]
    source: str                     # "its GPU code", "the matrix: …"


def check_gpus(view: View) -> Iterator[Finding | Undecided]:
    """SF901, SF902 and SF1005."""
    yield from check_driver_age(view)
    torch = installed_torch(view)
    yield from check_cpu_torch(view, torch)
    if torch is not None:
        yield from check_tegra(view, torch)
    if torch is not None and torch.cuda == CPU:
        return
    capabilities = tuple(sorted({each.capability for each in view.machine.driver.gpus if each.capability}))
    files = files_with_code(view, torch)
    if not files:
        return
    if not capabilities:
        yield Undecided(subject="gpu-code", reason="whether the binaries hold code for the GPU cannot be told: no "
                                                   "GPU's compute capability is known")
        return
    for package, paths in files.items():
        yield from check_package(view, package, paths, capabilities)


def files_with_code(view: View, torch: InstalledTorch | None) -> Mapping[str, tuple[str, ...]]:
    """Files that may hold GPU code, by package ("torch 2.8.0"): what imports load and is linked against CUDA.

    NVIDIA's own libraries are left out: they serve more GPUs than torch does, and choose among files by themselves.
    """
    found = defaultdict[str, dict[str, None]](dict)
    for opening in view.openings:
        for number in opening.outcome.loaded:
            object_ = opening.outcome.attempted.objects[number]
            if not any(name.startswith(GPU_LIBRARIES) for name in object_.elf.needed):
                continue
            owners = view.owners(object_.path, object_.real_path)
            name = f"{owners[0].name} {owners[0].version}" if owners else ""
            if not name.startswith(NVIDIA):
                found[name or object_.path][object_.path] = None
    if torch is not None and torch.cuda_major is not None:
        found[torch.name].setdefault(f"{torch.folder}/libtorch_cuda.so")
    return {name: tuple(paths) for name, paths in found.items()}


def check_package(view: View, package: str, paths: tuple[str, ...],
                  capabilities: tuple[str, ...]) -> Iterator[Finding | Undecided]:
    """SF902 for one package. One file that runs is enough: packages bring files for one kind of GPU alone."""
    lacking, known = list[Verdict](), list[Verdict]()
    for capability in capabilities:
        verdicts = list(judge(view, package, paths, capability))
        answers = {each.answer for each in verdicts}
        known += verdicts
        if answers & {"native", "jit"}:
            if "native" not in answers:
                yield from check_ptx(view, package, next(each for each in verdicts if each.answer == "jit"))
        elif "no" in answers:
            lacking += [each for each in verdicts if each.answer == "no"][:1]
        elif "cannot-tell" in answers:
            yield Undecided(subject="gpu-code", reason=f"what GPU code {package} has for compute capability "
                                                       f"{capability} cannot be told")
    if lacking:
        yield not_supported(view, package, lacking, len({each.capability for each in lacking}) == len(capabilities))


def judge(view: View, package: str, paths: tuple[str, ...], capability: str) -> Iterator[Verdict]:
    """What the files say; where none of them can be read, what the matrix says of the package."""
    torch, answers = installed_torch(view), list[Verdict]()
    for path in paths:
        archs = view.archs(path) if view.archs is not None else UnreadableFatbin(path=path, reason="not asked")
        if isinstance(archs, UnreadableFatbin):
            continue
        told = ((*archs.cubins, *archs.ptx), runs_on(archs, capability).answer) if archs else ((), "no-code")
        answers.append(Verdict(path=path, capability=capability, archs=told[0], answer=told[1], source="its GPU code"))
    yield from answers
    is_torch = torch is not None and package == torch.name
    # a torch for CUDA surely has code somewhere
    if not answers or (is_torch and all(each.answer == "no-code" for each in answers)):
        yield judge_by_matrix(view, package, paths[0], capability)


def judge_by_matrix(view: View, package: str, path: str, capability: str) -> Verdict:
    """What the matrix says of torch and of flash-attn's prebuilt wheels; of others nothing is known."""
    from stackfix.matrix.query import flash_attn_release, gpu_runs

    torch, name, archs, source = installed_torch(view), package.partition(" ")[0], tuple[str, ...](), ""
    if torch is not None and package == torch.name:
        rows = [each for each in view.matrix.torch if (each.version, each.cuda, each.platform)
                == (torch.release, torch.cuda, platform_of(view))]
        archs, source = next(((each.gpu_archs, each.source) for each in rows if each.gpu_archs), ((), ""))
    elif name == "flash-attn":
        release = flash_attn_release(view.matrix, package.partition(" ")[2])
        archs, source = (release.gpu_archs, release.source) if release else ((), "")
    answer = "cannot-tell"
    if archs:
        native = gpu_runs(tuple(each for each in archs if each.startswith("sm_")), capability)
        answer = "native" if native else "jit" if gpu_runs(archs, capability) else "no"
    return Verdict(path=path, capability=capability, answer=answer, archs=archs, source=f"the matrix: {source}")


def check_ptx(view: View, package: str, verdict: Verdict) -> Iterator[Finding]:
    """SF901 where the driver has to compile PTX of a newer CUDA than its own."""
    from stackfix.matrix.query import jit_cuda_of_driver

    driver, torch = user_driver(view), installed_torch(view)
    own = jit_cuda_of_driver(view.matrix, driver) if driver else None
    cuda = torch.cuda if torch and torch.name == package and torch.cuda and "." in torch.cuda else None
    if own is not None and cuda is not None and numbers(own) < numbers(cuda):
        yield make_finding(
            "SF901", "error", summary=f"Driver {driver} cannot compile the code that {package} has for this GPU",
            why=f"For compute capability {verdict.capability} it has only PTX of CUDA {cuda}, and a driver of CUDA "
                f"{own} compiles no PTX that is newer than itself.", culprit=Culprit(package=f"NVIDIA driver {driver}"),
            requester=Requester(package=package, path=verdict.path), error=BAD_PTX,
            evidence=(f"code for: {', '.join(verdict.archs)} ({verdict.source})",),
            cure=(f"a driver of CUDA {cuda} or newer",), why_not="the driver lies outside of the environment")


def not_supported(view: View, package: str, lacking: list[Verdict], every: bool) -> Finding:    # noqa: FBT001
    """SF902: no code for these GPUs. Where another GPU of the machine can be used, it is a warning."""
    torch, first = installed_torch(view), lacking[0]
    gpus = [each for each in view.machine.driver.gpus if each.capability in {each.capability for each in lacking}]
    names = ", ".join(dict.fromkeys(f"{each.name or 'GPU'} ({each.capability})" for each in gpus))
    is_torch = torch is not None and package == torch.name
    by_matrix = first.source.startswith("the matrix")
    return make_finding(
        "SF902", "warning" if not every or (by_matrix and not is_torch) else "error",
        level="torch" if is_torch else "extensions", summary=f"{package} has no code for {names}",
        why="Machine code runs on GPUs of its own major capability only, and there is no PTX that a driver could "
            "compile for this one. torch.cuda.is_available() is true nonetheless: the first kernel fails.",
        culprit=Culprit(package=package, path=first.path),
        evidence=(*(f"{each.path or package}: {', '.join(each.archs)} ({each.source})" for each in lacking),
                  *(f"GPU: {each.name or 'no name'}, compute capability {each.capability}" for each in gpus)),
        error=f"torch.AcceleratorError: {NO_KERNEL}" if is_torch else NO_KERNEL,
        cure=ways_out(view, package, first.capability),
        why_not="it takes another build, and with it another stack" if is_torch else
                "it takes a build for this GPU, which the package index may not have")


def check_cpu_torch(view: View, torch: InstalledTorch | None) -> Iterator[Finding]:
    """SF1005: a torch for the CPU where a driver runs a GPU. Requirements do not tell the two apart."""
    driver = user_driver(view)
    if torch is None or torch.cuda != CPU or driver is None or not view.machine.driver.gpus:
        return
    names = ", ".join(dict.fromkeys(each.name or "a GPU" for each in view.machine.driver.gpus))
    yield make_finding(
        "SF1005", "warning", summary=f"{torch.name} is built for the CPU, and there is {names}",
        why="The package index, or the index that was named, gave the CPU build. A requirement such as "
            f"torch=={torch.release} takes it for satisfied, so a later install from a CUDA index changes nothing.",
        culprit=Culprit(package=torch.name), error="AssertionError: Torch not compiled with CUDA enabled",
        evidence=(f"for the CPU, by {torch.cuda_from}", f"driver {driver}; {names}"),
        cure=other_builds(view, torch, driver), why_not="whether the GPU is wanted only the user can tell")


def check_tegra(view: View, torch: InstalledTorch) -> Iterator[Finding]:
    """SF902 on a Jetson: wheels for Arm servers have no code for its GPU and expect another driver."""
    jetson = view.machine.jetson
    if jetson is None or torch.cuda_major is None or ".nv" in torch.version or "+nv" in torch.version:
        return
    if jetson.release is not None and numbers(jetson.release)[:1] >= SBSA_ON_TEGRA:
        return
    yield make_finding(
        "SF902", "warning", level="torch", summary=f"{torch.name} is built for servers, this is a Jetson",
        why="The GPU of a Jetson is driven by L4T, not by NVIDIA's driver for servers, before L4T 38. NVIDIA's own "
            "wheels for Jetson carry a version such as 2.3.0+nv24.5.",
        culprit=Culprit(package=torch.name), error=NO_KERNEL,
        evidence=(f"Jetson: {jetson.model or 'model not stated'} ({jetson.found_via})",
                  f"L4T {jetson.release or 'of a release that is not stated'}",
                  f"CUDA {torch.cuda}, by {torch.cuda_from}"),
        cure=("install NVIDIA's torch wheel for this JetPack",), why_not="NVIDIA publishes these wheels elsewhere")
