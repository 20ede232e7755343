"""The driver library of the package cuda-compat, which lets an older driver run a newer CUDA on some GPUs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stackfix.diagnose.finding_records import Culprit, Finding
from stackfix.diagnose.machine_libraries import CUDA, OUTSIDE, Copy, found_where, leave_out, newer
from stackfix.diagnose.make_finding import make_finding
from stackfix.diagnose.situation import View
from stackfix.inspect.machine_records import Undecided

# Source: CUDA Compatibility guide: forward compatibility is for data-center GPUs and "select" workstation cards.
CONSUMER = re.compile(r"GeForce|TITAN", re.IGNORECASE)
DATA_CENTER = re.compile(r"\b(?:Tesla|HGX|DGX|(?:[ABHTLPV]|GB|GH|GV|PG)\d{1,3}[A-Z]{0,2})\b")
WORKSTATION = re.compile(r"\b(?:Quadro|RTX)\b")


def card_class(names: tuple[str | None, ...]) -> str | None:
    """What the GPUs are: "consumer" where any is, else "workstation", else "data-center"; None: not known."""
    known = [name for name in names if name]
    if any(CONSUMER.search(name) for name in known):
        return "consumer"
    if any(WORKSTATION.search(name) for name in known):
        return "workstation"
    return "data-center" if known and all(DATA_CENTER.search(name) for name in known) else None


def check_compat(view: View, copies: tuple[Copy, ...]) -> Iterator[Finding | Undecided]:
    """SF804: cuda-compat's libcuda is taken. Only some GPUs support it, and it must be newer than the driver."""
    module, winner = view.machine.driver.kernel_module, copies[0]
    if module is None:
        yield Undecided(subject="cuda-compat", reason=f"{winner.path} would be taken for {CUDA}; whether it fits "
                        "depends on the driver and the GPU, and no driver is known here")
        return
    if winner.version == module.version:
        return
    names = tuple(each.name for each in view.machine.driver.gpus)
    kind = card_class(names)
    if kind is None:
        yield Undecided(subject="cuda-compat", reason="whether the GPU supports forward compatibility cannot be told: "
                        + (", ".join(name for name in names if name) or "no GPU is named"))
    older = winner.version is not None and not newer(winner.version, module.version)
    severity = "error" if kind == "consumer" or older else "warning" if kind == "workstation" else "note"
    folder = winner.path.rpartition("/")[0]
    yield make_finding(
        "SF804", severity,
        summary=f"{winner.path} (cuda-compat{f' {winner.version}' if winner.version else ''}) is taken for {CUDA}",
        why=f"{winner.via} leads to it before the driver's own library. " + (
            f"It is older than the driver {module.version}, which it is meant to be newer than." if older else
            "It lets an older driver run a newer CUDA, but only on data-center GPUs and some workstation cards"
            + (f"; {', '.join(dict.fromkeys(name for name in names if name))} is none of them." if kind == "consumer"
               else ".")),
        culprit=Culprit(path=winner.path, variable="LD_LIBRARY_PATH" if winner.via.startswith("LD_LIB") else None),
        evidence=(f"kernel module {module.version} ({module.found_via})", *found_where(copies),
                  *(f"GPU: {name}" for name in dict.fromkeys(names) if name)),
        error="Error 803: system has unsupported display driver / cuda driver combination" if older else
              "Error 804: forward compatibility was attempted on non supported HW",
        winner=winner.path, loser=next((each.path for each in copies if each.origin in {"system", "wsl"}), None),
        cure=(*leave_out(view, winner, folder), "remove the package cuda-compat from the machine or the image"),
        why_not=None if winner.via.startswith("LD_LIB") else OUTSIDE)
