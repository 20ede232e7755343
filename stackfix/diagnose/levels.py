"""The pyramid: driver, CUDA, cuDNN, torch, extensions, environment, each with a verdict."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

from stackfix.diagnose.finding_records import LEVELS, SEVERITIES, Finding, Level
from stackfix.diagnose.imports_projects import required_names
from stackfix.diagnose.installed_torch import CPU, conda_package, installed_torch
from stackfix.diagnose.records import LoadedObject
from stackfix.diagnose.situation import View

SUFFIX = re.compile(r"-cu\d{2}$")
VERSION_OF_FILE = re.compile(r"\.so\.(\d+(?:\.\d+)*)$")
MOST = 8                            # extensions that are named


def describe_levels(view: View, findings: Sequence[Finding]) -> Iterator[Level]:
    """One record a storey, from the base. A note does not hide that something is absent or cannot be told."""
    for name in LEVELS:
        there, text = STOREYS[name](view)
        worst = min((SEVERITIES.index(each.severity) for each in findings if each.level == name), default=None)
        told = SEVERITIES[worst] if worst is not None else there
        yield Level(name=name, verdict=there if told == "note" and there != "ok" else told, text=text)


# --- the driver ---


def driver(view: View) -> tuple[str, str]:
    """NVIDIA's driver and the GPUs."""
    machine = view.machine
    module = machine.driver.kernel_module
    if module is None:
        return "cannot-tell", next((each.reason for each in machine.undecided if each.subject == "driver"),
                                   "nothing tells which driver there is")
    counted = Counter(f"{each.name or 'GPU'}" + (f" (compute capability {each.capability})" if each.capability else "")
                      for each in machine.driver.gpus)
    gpus = ", ".join(f"{count} x {name}" if count > 1 else name for name, count in counted.items())
    return "ok", f"NVIDIA driver {module.version}; {gpus or 'no GPU is listed'}"


# --- libraries ---


def cuda(view: View) -> tuple[str, str]:
    """CUDA runtime and nvJitLink, of the environment's packages, inside torch, or of the system."""
    torch = installed_torch(view)
    found = [*carried(view, "CUDA runtime", "libcudart"), *carried(view, "nvJitLink", "libnvJitLink")]
    if found:
        return "ok", ", ".join(found)
    if torch is not None and torch.cuda == CPU:
        return "absent", "none: torch is built for the CPU"
    if torch is not None and torch.cuda_major is not None:
        return "cannot-tell", f"torch is built for CUDA {torch.cuda}; no CUDA runtime was found"
    return "absent", "no package of the environment carries it"


def cudnn(view: View) -> tuple[str, str]:
    """cuDNN."""
    found = list(carried(view, "cuDNN", "libcudnn"))
    return ("ok", ", ".join(found)) if found else ("absent", "no package of the environment carries it")


def carried(view: View, family: str, stem: str) -> Iterator[str]:
    """A library family in the environment: its packages; where there is none, the file that the imports load."""
    rows = [each for each in view.libraries.families if each.name == family]
    projects = {project for each in rows for project in each.projects}
    names = {package for each in rows for package in each.conda}
    found = [f"{family} {each.version} ({each.name})" for each in view.distributions.values()
             if SUFFIX.sub("", each.name) in projects]
    if view.environment.conda is not None:
        found += [f"{family} {each.version} (conda {each.name})" for each in view.environment.conda.packages
                  if each.name in names]
    loaded = loaded_file(view, stem) if not found else None
    if loaded is not None:
        owners, version = view.owners(loaded.path, loaded.real_path), VERSION_OF_FILE.search(loaded.real_path)
        whose = f"in {owners[0].name} {owners[0].version}" if owners else f"from {loaded.path}"
        found.append(f"{family}{f' {version[1]}' if version else ''} {whose}")
    yield from found


def loaded_file(view: View, stem: str) -> LoadedObject | None:
    """The first library of that stem which the imports map; wheels may put a hash behind it."""
    name = re.compile(rf"{re.escape(stem)}(?:-[0-9a-f]+)?\.so(?:\.|$)")
    for opening in view.openings:
        state = opening.outcome.attempted
        for number in opening.outcome.loaded:
            if name.match(state.objects[number].path.rpartition("/")[2]):
                return state.objects[number]
    return None


# --- torch and what stands on it ---


def torch(view: View) -> tuple[str, str]:
    """torch, and the CUDA that it was built for."""
    found = installed_torch(view)
    if found is None:
        return "absent", "torch is not installed"
    package = conda_package(view, view.distributions["torch"])
    return "ok", found.title + (f" (conda {package.name} {package.version} {package.build})" if package else "")


def extensions(view: View) -> tuple[str, str]:
    """Packages with compiled files that are known to need CUDA, or that require torch."""
    compiled = {owner.name for each in view.environment.shared_objects for owner in each.owners}
    known = {each.project for each in view.libraries.imports} - {"torch", "numpy"}
    found = [f"{each.name} {each.version}" for each in view.distributions.values()
             if not each.name.startswith(("nvidia-", "cuda-")) and (
                 each.name in known or ("torch" in required_names(each.requires) and each.name in compiled))]
    if not found:
        return "absent", "none that is known to be built for torch or CUDA"
    more = f" and {len(found) - MOST} more" if len(found) > MOST else ""
    return "ok", ", ".join(sorted(found)[:MOST]) + more


def environment(view: View) -> tuple[str, str]:
    """Python, the prefix, the C and C++ libraries."""
    python, machine = view.environment.python, view.machine
    parts = [f"Python {python.version or python.minor} in {view.environment.prefix}" if python else
             f"{view.environment.prefix}, without Python"]
    if machine.glibc is not None and machine.glibc.version:
        parts.append(f"glibc {machine.glibc.version}")
    elif machine.libc == "musl":
        parts.append("musl")
    newest = dict(machine.libstdcxx.newest).get("GLIBCXX") if machine.libstdcxx else None
    if newest:
        parts.append(f"libstdc++ up to GLIBCXX_{newest}")
    if machine.architecture:
        parts.append(machine.architecture)
    return "ok" if python else "cannot-tell", "; ".join(parts)


STOREYS: Mapping[str, Callable[[View], tuple[str, str]]] = MappingProxyType({
    "driver": driver, "cuda": cuda, "cudnn": cudnn, "torch": torch, "extensions": extensions,
    "environment": environment,
})
