"""The pyramid: driver, CUDA, cuDNN, torch, extensions, environment, each with a verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stackfix.diagnose.finding_records import LEVELS, SEVERITIES, Finding, Level
from stackfix.diagnose.situation import View


def describe_levels(view: View, findings: Sequence[Finding]) -> Iterator[Level]:
    """One record a storey, from the base."""
    for name in LEVELS:
        there, text = STOREYS[name](view)
        worst = min((SEVERITIES.index(each.severity) for each in findings if each.level == name), default=None)
        verdict = SEVERITIES[worst] if worst is not None else there
        yield Level(name=name, verdict=verdict, text=text)


def driver(view: View) -> tuple[str, str]:
    """NVIDIA's driver and the GPUs."""
    module = view.machine.driver.kernel_module
    if module is None:
        reason = next((each.reason for each in view.machine.undecided if each.subject == "driver"), "no driver found")
        return "cannot-tell", reason
    gpus = ", ".join(each.name or "a GPU" for each in view.machine.driver.gpus) or "no GPU listed"
    return "ok", f"NVIDIA driver {module.version}; {gpus}"


def carried(view: View, *families: str) -> tuple[str, str]:
    """Which versions of these library families the environment's packages carry."""
    projects = {project for each in view.libraries.families if each.name in families for project in each.projects}
    conda = {package for each in view.libraries.families if each.name in families for package in each.conda}
    found = [f"{each.name} {each.version}" for each in view.distributions.values()
             if each.name.removesuffix("-cu11").removesuffix("-cu12").removesuffix("-cu13") in projects]
    if view.environment.conda is not None:
        found += [f"{each.name} {each.version} (conda)" for each in view.environment.conda.packages
                  if each.name in conda]
    return ("ok", ", ".join(found)) if found else ("absent", "no package of the environment carries it")


def cuda(view: View) -> tuple[str, str]:
    """CUDA runtime and nvJitLink."""
    return carried(view, "CUDA runtime", "nvJitLink")


def cudnn(view: View) -> tuple[str, str]:
    """cuDNN."""
    return carried(view, "cuDNN")


def torch(view: View) -> tuple[str, str]:
    """torch."""
    found = view.distributions.get("torch")
    return ("ok", f"torch {found.version}") if found else ("absent", "torch is not installed")


def extensions(view: View) -> tuple[str, str]:
    """Packages whose imports are known to need torch or CUDA."""
    known = {each.project for each in view.libraries.imports} - {"torch"}
    found = [f"{each.name} {each.version}" for each in view.distributions.values() if each.name in known]
    return ("ok", ", ".join(found)) if found else ("absent", "none that is known to be built for torch or CUDA")


def environment(view: View) -> tuple[str, str]:
    """Python, the prefix, the C and C++ libraries."""
    python = view.environment.python
    what = f"Python {python.version or python.minor}" if python else "no Python"
    glibc = view.machine.glibc
    return "ok", f"{what} in {view.environment.prefix}" + (f"; glibc {glibc.version}" if glibc else "")


STOREYS = {"driver": driver, "cuda": cuda, "cudnn": cudnn, "torch": torch, "extensions": extensions,
           "environment": environment}
