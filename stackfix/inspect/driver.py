"""The NVIDIA driver and GPUs of a machine, as the kernel module and nvidia-smi state them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

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
