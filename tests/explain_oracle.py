"""What the files of almanac and matrix say, read here by a few lines of their own: the judge of what is derived."""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MATRICES = Path(__file__).resolve().parent.parent / "matrices"


@cache
def toml(name: str) -> dict[str, Any]:
    document: dict[str, Any] = tomllib.loads((MATRICES / name).read_text(encoding="utf-8"))
    return document


@cache
def read_versions(package: str) -> tuple[str, ...]:
    """Releases of a wheel that were read, oldest first."""
    lines = (MATRICES / "abi/nvidia/packages.tsv").read_text(encoding="utf-8").splitlines()
    rows = (line.split("\t") for line in lines)
    return tuple(row[1] for row in rows if row[0] == package and row[2] != "unread")


@cache
def exports(soname: str) -> dict[tuple[str, str], str]:
    """(package, function) -> its releases as the file writes them; "" is all of them."""
    found: dict[tuple[str, str], str] = {}
    package = ""
    for line in (MATRICES / f"abi/nvidia/{soname}.tsv").read_text(encoding="utf-8").splitlines():
        name, _, versions = line.partition("\t")
        if name.startswith("@ "):
            package = name.removeprefix("@ ")
        elif package:
            found[package, name] = versions
    return found


def first_with(package: str, soname: str, function: str) -> str | None:
    """The oldest read release that has a function; None where all read ones do."""
    versions = exports(soname)[package, function]
    return re.split("[-,]", versions)[0] if versions else None


def late_functions(package: str, soname: str, pattern: str) -> list[str]:
    """Functions that only newer releases have, and that all later ones have."""
    return sorted(name for (owner, name), versions in exports(soname).items()
                  if owner == package and re.fullmatch(r"[\d.]+-", versions) and re.fullmatch(pattern, name))


@cache
def torch_names() -> dict[str, tuple[str, str]]:
    """Name in torch's libraries -> (minors, libraries), of those that not all minors have."""
    rows = (line.split("\t") for line in (MATRICES / "abi/core.tsv").read_text(encoding="utf-8").splitlines()[1:])
    return {key: (minors, libraries) for key, minors, libraries in rows}


@cache
def torch_minors() -> tuple[str, ...]:
    """All minors of the almanac, oldest first."""
    ends = {end for minors, _ in torch_names().values() for end in re.findall(r"\d+\.\d+", minors)}
    return tuple(sorted(ends, key=number))


def number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


@cache
def companions(package: str) -> dict[str, tuple[str, str]]:
    """Release of torchvision … -> (torch that it requires, CUDA)."""
    rows = toml("companions.toml")[package]["releases"]
    return {row["version"]: (row.get("torch", ""), row.get("cuda", "")) for row in rows}


def companion_of(package: str, torch: str) -> str:
    """The newest release of a companion that this torch satisfies, for the CUDA of its wheel on the index."""
    build = next(each for each in torch_rows()[torch]["builds"] if each.get("index", "default") == "default")
    fits = [version for version, (wanted, cuda) in companions(package).items() if cuda == build["cuda"]
            and (wanted in {"", f"=={torch}"} or (wanted.startswith(">=") and number(torch) >= number(wanted)))]
    return max(fits, key=number)


def driver_floor(major: int) -> str:
    """The oldest driver of a CUDA major."""
    return str(next(row["floor"] for row in toml("cuda.toml")["driver"]["families"] if row["major"] == major))


@cache
def torch_rows() -> dict[str, dict[str, Any]]:
    """Release of torch -> its table."""
    return {row["version"]: row for row in toml("torch.toml")["release"]}


def of_abi(abi: str) -> list[str]:
    """Minors whose newest wheel of the default index for x86_64 has this std::string ("old", "new"), oldest first."""
    found: dict[str, str | None] = {}
    for version, row in torch_rows().items():
        build = next(each for each in row["builds"] if each.get("index", "default") == "default")
        found.setdefault(".".join(version.split(".")[:2]), build.get("abi"))
    return sorted((minor for minor, each in found.items() if each == abi), key=number)


def cudnn_pin(torch: str) -> str:
    """The cuDNN that a torch of the default index requires."""
    build = next(each for each in torch_rows()[torch]["builds"] if each.get("index", "default") == "default")
    lines = toml("torch.toml")["pins"][build["pins"]]["lines"]
    return next(found[1] for line in lines if (found := re.match(r"nvidia-cudnn-cu\d+==([\d.]+)", line)))
