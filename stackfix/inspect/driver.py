"""The NVIDIA driver and GPUs of a machine, as the kernel module and nvidia-smi state them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from stackfix.quick import dataclass

VERSION = re.compile(r"\b(\d{3}\.\d{1,3}(?:\.\d{1,3})?)\b")
SMI_TIMEOUT = 10.0      # seconds: nvidia-smi is known to hang on a wedged driver


def read_driver_version(root: Path = Path("/")) -> str | None:
    """Version of the loaded kernel module ("550.54.15"), or None where none is loaded.

    Source: /sys/module/nvidia/version, else the NVRM line of /proc/driver/nvidia/version.
    """
    for relative in ("sys/module/nvidia/version", "proc/driver/nvidia/version"):
        try:
            with (root / relative).open(encoding="utf-8", errors="replace") as stream:
                found = VERSION.search(stream.read(4096))
        except OSError:
            continue
        if found:
            return found[1]
    return None


def read_gpu_archs(nvidia_smi: str = "nvidia-smi") -> tuple[str, ...]:
    """Distinct compute capabilities of the visible GPUs as "sm_90", sorted; empty where nvidia-smi lists none."""
    try:
        done = subprocess.run(
            [nvidia_smi, "--query-gpu=compute_cap", "--format=csv,noheader"],
            capture_output=True, text=True, timeout=SMI_TIMEOUT, check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    return parse_compute_capabilities(done.stdout)


def parse_compute_capabilities(text: str) -> tuple[str, ...]:
    """`9.0` lines as ("sm_90",); lines that are no capability are passed over."""
    found = {
        (int(major), int(minor))
        for major, minor in re.findall(r"^\s*(\d{1,2})\.(\d)\s*$", text, flags=re.MULTILINE)
    }
    return tuple(f"sm_{major}{minor}" for major, minor in sorted(found))


@dataclass(frozen=True, slots=True, kw_only=True)
class SmiGpu:
    """One line of nvidia-smi's table."""

    bus: str                # "00000000:41:00.0"
    uuid: str | None
    name: str | None
    capability: str | None  # "9.0"
    mig: bool | None        # None: the GPU has no MIG


def read_smi(nvidia_smi: str = "nvidia-smi") -> tuple[SmiGpu, ...] | str:
    """GPUs that nvidia-smi lists, or why it lists none."""
    query = "--query-gpu=pci.bus_id,uuid,compute_cap,mig.mode.current,name"
    try:
        done = subprocess.run([nvidia_smi, query, "--format=csv,noheader"], capture_output=True, text=True,
                              errors="replace", timeout=SMI_TIMEOUT, check=False)
    except FileNotFoundError:
        return "there is no nvidia-smi"
    except subprocess.TimeoutExpired:
        return f"nvidia-smi did not answer within {SMI_TIMEOUT:g} s"
    except OSError as error:
        return f"nvidia-smi cannot be started: {error.strerror}"
    if done.returncode != 0:
        said = " ".join(f"{done.stdout} {done.stderr}".split())
        return f"nvidia-smi ended with status {done.returncode}: {said[:300]}"
    return parse_smi(done.stdout)


def parse_smi(text: str) -> tuple[SmiGpu, ...]:
    """Lines `00000000:41:00.0, GPU-…, 9.0, Enabled, NVIDIA H100`; lines of another shape are passed over."""
    found = []
    for line in text.splitlines():
        cells = [each.strip() for each in line.split(",", 4)]
        if len(cells) == 5 and re.fullmatch(r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f:.]+", cells[0]):
            capability = cells[2] if re.fullmatch(r"\d{1,2}\.\d", cells[2]) else None
            found.append(SmiGpu(bus=cells[0], uuid=cells[1] or None, capability=capability, name=cells[4] or None,
                                mig={"Enabled": True, "Disabled": False}.get(cells[3])))
    return tuple(found)
