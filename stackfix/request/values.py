"""Values of single options, checked. `thing` names the option in messages: "--cuda" or a key of a file."""

from __future__ import annotations

import re

from stackfix.errors import BadInput

LAYOUTS = ("native", "mixed", "wheels")
PLATFORMS = ("linux-64", "linux-aarch64")
UNKNOWN_PLATFORMS = ("win-64", "win-arm64", "osx-64", "osx-arm64", "linux-ppc64le", "linux-s390x", "linux-32")


def check_cuda(text: str, thing: str = "--cuda") -> str:
    """`12`, `12.1` or `cpu`."""
    value = text.strip().lower()
    if value == "cpu" or re.fullmatch(r"[1-9]\d?(?:\.\d{1,2})?", value):
        return value
    hint = "write `12.1`, `12` or `cpu`"
    if match := re.fullmatch(r"cu(?:da)?[ -]?(\d\d)\.?(\d{1,2})", value):
        hint = f"write `{match[1]}.{match[2]}`"
    elif match := re.fullmatch(r"(\d{1,2}\.\d{1,2})(?:\.\d+)+", value):
        hint = f"a torch build belongs to a CUDA minor: write `{match[1]}`"
    raise BadInput(f"{thing} {text}".rstrip(), "is not a CUDA version", hint)


def check_python(text: str, thing: str = "--python") -> str:
    """`3.11`."""
    value = text.strip()
    if re.fullmatch(r"3\.(?:0|[1-9]\d?)", value):
        return value
    hint = "write a minor version such as `3.11`"
    if match := re.fullmatch(r"(?:(?:cp|py|python)?-?3[.]?(\d{1,2}))(?:\.\d+)*", value):
        hint = f"write `3.{match[1]}`"
    elif value.endswith("t"):
        hint = "free-threaded builds are not in the matrix: write a minor version such as `3.13`"
    raise BadInput(f"{thing} {text}".rstrip(), "is not a Python minor version", hint)


def check_platform(text: str, thing: str = "--platform") -> str:
    """A conda subdir that the matrix has rows for."""
    value = text.strip()
    if value in PLATFORMS:
        return value
    known = f"known: {', '.join(PLATFORMS)}"
    if value in UNKNOWN_PLATFORMS:
        raise BadInput(f"{thing} {text}", "the matrix has no rows for this platform yet", known)
    raise BadInput(f"{thing} {text}".rstrip(), "is not a platform", known)


def check_layout(text: str, thing: str = "--layout") -> str | None:
    """`native`, `mixed` or `wheels`; None for `auto`."""
    value = text.strip()
    if value in LAYOUTS:
        return value
    if value == "auto":
        return None
    raise BadInput(f"{thing} {text}".rstrip(), "is not a layout", f"one of: auto, {', '.join(LAYOUTS)}")


def check_driver(text: str, thing: str = "--driver") -> str:
    """`550.54.15`, `550.54`, `550` or `auto`."""
    value = text.strip()
    if value == "auto" or re.fullmatch(r"[1-9]\d{2,3}(?:\.\d{1,3}){0,2}", value):
        return value
    raise BadInput(f"{thing} {text}".rstrip(), "is not an NVIDIA driver version",
                   "write it as nvidia-smi shows it, such as `550.54.15`, or `auto`")


def check_gpu_arch(text: str, thing: str = "--gpu-arch") -> str:
    """`sm_90` or `auto`. `9.0`, as nvidia-smi names it, is taken as `sm_90`."""
    value = text.strip().lower()
    if value == "auto":
        return value
    if match := re.fullmatch(r"(?:sm_?)?(\d{1,2})\.?(\d)([af]?)", value):
        return f"sm_{match[1]}{match[2]}{match[3]}"
    raise BadInput(f"{thing} {text}".rstrip(), "is not a GPU architecture",
                   "write a compute capability such as `sm_90` or `9.0`, or `auto`")


def check_glibc(text: str, thing: str = "--glibc") -> str:
    """`2.28`."""
    value = text.strip()
    if re.fullmatch(r"2\.(?:[1-9]\d?)", value):
        return value
    raise BadInput(f"{thing} {text}".rstrip(), "is not a glibc version", "write it as `ldd --version` shows it: `2.28`")
