"""Packages that are built for one torch and one CUDA, beside the torch that is installed."""

from __future__ import annotations

from collections.abc import Iterator

from stackfix.abi.torch_required import torch_required
from stackfix.diagnose.abi_told import working_lines
from stackfix.diagnose.finding_records import Culprit, Finding, Requester
from stackfix.diagnose.install_lines import install_line
from stackfix.diagnose.installed_torch import CPU, VARIANT, InstalledTorch, installed_torch
from stackfix.diagnose.make_finding import make_finding
from stackfix.diagnose.releases import admits
from stackfix.diagnose.requirements_stack import Stack, named
from stackfix.diagnose.situation import View
from stackfix.inspect.environment_records import Distribution
from stackfix.matrix.records import Companion

# They compare CUDA when they are imported, and refuse another major; torchaudio refused another minor before 2.11.
REFUSES = frozenset({"torchvision", "torchaudio"})


def is_companion(view: View, distribution: Distribution) -> bool:
    """Whether the matrix knows a package as one that is built for one torch."""
    return any(each.package == distribution.name for each in view.needs.companions)


def find_companion_mismatches(view: View, stack: Stack) -> Iterator[Finding]:
    """SF602: companions of another torch release, and of another CUDA."""
    torch = installed_torch(view)
    if torch is None:
        return
    for distribution in view.distributions.values():
        if is_companion(view, distribution):
            row = row_of(view, distribution)
            wanted, source = wanted_torch(view, distribution, row)
            if wanted and not admits(wanted, torch.version):
                yield of_torch(view, stack, torch, distribution, wanted, source)
            elif row is not None and torch.manager == distribution.manager == "pip":
                yield from of_cuda(stack, torch, distribution, row)


def row_of(view: View, distribution: Distribution) -> Companion | None:
    """The row of an installed release; its local version does not count."""
    release = distribution.version.partition("+")[0]
    return next((each for each in view.needs.companions
                 if each.package == distribution.name and each.version == release), None)


def wanted_torch(view: View, distribution: Distribution, row: Companion | None) -> tuple[str | None, str]:
    """(range of torch, what states it): the package's own metadata as they apply here, else the matrix."""
    python, machine = view.environment.python, view.situation.loader.machine.machine
    stated = torch_required(distribution.requires, (), None, (machine,), python.minor if python else None)
    if stated:
        return stated, f"{distribution.metadata}/METADATA: Requires-Dist: torch{stated}"
    return (row.torch, f"the matrix ({row.confidence}): {row.source}") if row else (None, "")


def of_torch(view: View, stack: Stack, torch: InstalledTorch, distribution: Distribution, wanted: str,
             source: str) -> Finding:
    """A companion of another torch release."""
    shown = stack.shown(distribution.name)
    evidence = [source, f"{view.distributions['torch'].metadata}: {torch.version}"]
    if shown:
        evidence.append(f"the loader shows what comes of it: {shown}")
    else:
        evidence += working_lines(view, distribution.name, f"torch{wanted}")
    return make_finding(
        "SF602", "note" if shown else "warning",
        summary=f"{named(distribution)} is for torch{wanted}, and torch {torch.version} is installed",
        why="Its compiled code was built for that torch; a later installation has moved one of the two.",
        culprit=Culprit(package=named(distribution)), requester=Requester(package=torch.name), evidence=tuple(evidence),
        cure=cures(view, torch, distribution, wanted),
    )


def cures(view: View, torch: InstalledTorch, distribution: Distribution, wanted: str) -> tuple[str, ...]:
    """The companion release of this torch, as far as the matrix knows one; else the torch that it is for."""
    rows = [each for each in view.needs.companions if each.package == distribution.name and each.torch
            and each.torch.startswith("==") and admits(each.torch, torch.version)]
    to_torch = install_line(view, view.distributions["torch"], f"torch{wanted}", alone=False)
    if not rows:
        return (to_torch,)
    return (install_line(view, distribution, f"{distribution.name}=={rows[0].version}"), to_torch)


def of_cuda(stack: Stack, torch: InstalledTorch, distribution: Distribution, row: Companion) -> Iterator[Finding]:
    """A companion of another CUDA than torch's."""
    cuda, source = built_for(distribution, row)
    # A CUDA build beside a torch for the CPU fails at the loader; a CPU build beside any torch works on the CPU.
    if cuda is None or torch.cuda is None or CPU in {cuda, torch.cuda} or stack.shown(distribution.name):
        return
    severity = severity_of(torch.cuda, cuda, distribution, row)
    if severity is not None:
        yield make_finding(
            "SF602", severity,
            summary=f"{named(distribution)} is built for CUDA {cuda}, and torch {torch.version} for CUDA {torch.cuda}",
            why="They come from different indexes, or were installed at different times: their version numbers fit, "
                "their builds do not.",
            culprit=Culprit(package=named(distribution)), requester=Requester(package=torch.name),
            evidence=(f"CUDA {cuda}: {source}", f"CUDA {torch.cuda}: {torch.cuda_from or 'torch'}"),
            cure=(f"install torch and {distribution.name} together, from one index",),
        )


def severity_of(of_torch: str, of_companion: str, distribution: Distribution, row: Companion) -> str | None:
    """How bad two CUDA versions are together: libraries of one major work together, but some packages compare them."""
    if of_torch.partition(".")[0] != of_companion.partition(".")[0]:
        return None if row.same_cuda == "any" else "error" if distribution.name in REFUSES else "warning"
    if row.same_cuda != "minor" or of_torch == of_companion or "." not in of_torch:
        return None
    refuses = distribution.name == "torchaudio" and admits("<2.11", distribution.version)
    return "error" if refuses else "note"


def built_for(distribution: Distribution, row: Companion) -> tuple[str | None, str]:
    """(CUDA of the installed build, what tells it): the local version; without one it is the index's own wheel."""
    local = distribution.version.partition("+")[2]
    if not local:
        return row.cuda, f"the matrix ({row.confidence}): {row.source}"
    match = VARIANT.search(local)
    if match:
        return f"{match[1]}.{match[2]}", f"its version {distribution.version}"
    return (CPU if local.startswith(CPU) else None), f"its version {distribution.version}"
