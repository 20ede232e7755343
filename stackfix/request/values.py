"""Values of single options, checked. `thing` names the option in messages: "--cuda" or a key of a file."""

from __future__ import annotations

import re

from stackfix.errors import BadInput
from stackfix.platforms import PLATFORMS, split_place

LAYOUTS = ("native", "mixed", "wheels")
UNKNOWN_PLATFORMS = ("win-arm64", "win-32", "osx-64", "linux-ppc64le", "linux-s390x", "linux-armv7l", "linux-32")
SPELLINGS = {       # what wheel tags, uname and other tools call a platform
    "linux-64": ("linux", "linux-x86_64", "x86_64", "amd64", "manylinux", "linux-amd64", "x86_64-unknown-linux-gnu"),
    "linux-aarch64": ("linux-arm64", "aarch64", "aarch64-unknown-linux-gnu"),
    "win-64": ("windows", "win", "win32", "win_amd64", "win-amd64", "x86_64-pc-windows-msvc"),
    "osx-arm64": ("macos", "osx", "darwin", "mac", "macos-arm64", "arm64", "darwin-arm64", "aarch64-apple-darwin"),
}
OLDEST_MACOS = 11                       # the first for Apple silicon
MACOS_NAMES = {"big sur": "11.0", "monterey": "12.0", "ventura": "13.0", "sonoma": "14.0", "sequoia": "15.0",
               "tahoe": "26.0"}


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
    """A place: a conda subdir that torch has wheels for, or one with `-cpu` behind it."""
    value = text.strip()
    platform, _ = split_place(value)
    if platform in PLATFORMS:
        return value
    known = f"known: {', '.join(PLATFORMS)}, each with -cpu behind it for the CPU build there"
    if value.removesuffix("-cpu") in UNKNOWN_PLATFORMS:
        raise BadInput(f"{thing} {text}".rstrip(), "the matrix has no rows for this platform", known)
    plain = value.lower().removesuffix("-cpu")
    meant = next((name for name, others in SPELLINGS.items() if plain in (name, *others)), None)
    if meant is not None:
        variant = "-cpu" if value.lower().endswith("-cpu") else ""
        known = f"write `{meant}{variant}`"
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


def check_macos(text: str, thing: str = "--macos") -> str:
    """`14.0`; `14` is taken as that."""
    value = text.strip()
    match = re.fullmatch(r"([1-9]\d)(?:\.(0|[1-9]\d?))?", value, re.ASCII)
    if match is not None and int(match[1]) >= OLDEST_MACOS:
        return f"{match[1]}.{match[2] or 0}"
    hint = "write it as `sw_vers` shows it, without the patch: `14.0`"
    name = value.lower().removeprefix("macos").strip(" -_")
    if name in MACOS_NAMES:
        hint = f"write `{MACOS_NAMES[name]}`"
    elif longer := re.fullmatch(r"([1-9]\d\.\d{1,2})(?:\.\d+)+", value, re.ASCII):
        hint = f"write `{longer[1]}`"
    elif re.fullmatch(r"10(?:\.\d{1,2})*", value, re.ASCII):
        hint = f"Apple silicon begins with macOS {OLDEST_MACOS}: write `{OLDEST_MACOS}.0` or newer"
    raise BadInput(f"{thing} {text}".rstrip(), "is not a version of macOS", hint)
