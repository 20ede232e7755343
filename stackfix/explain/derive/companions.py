"""torchvision, torchaudio and xformers beside torch: which release belongs to which, and what is wrong with a pair."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial

from stackfix.abi.nearest import FLASH
from stackfix.explain.derive.extensions import releases_for
from stackfix.explain.derive.pins import builds_named, linux_builds, lock_of, newest_first
from stackfix.explain.derive.words import key_of
from stackfix.explain.records import Derivation, Facts, Fields
from stackfix.matrix.records import TorchBuild

LOCAL = re.compile(r"(?:cu(?P<cuda>\d{2})(?P<minor>\d)|(?P<cpu>cpu))")
MOST_PAIRS = 4
XFORMERS = "xformers"
FLASH_INSTALL = ("pip install --no-build-isolation '{}', whose setup takes the wheel for torch, CUDA and Python that "
                 "are there, and compiles where there is none.")
FLASH_COMPILE = ("Compile it against the torch that is there, with nvcc of torch's CUDA: "
                 "pip install --no-cache-dir --no-build-isolation flash-attn.")


def pair(name: str, fields: Fields, facts: Facts) -> Fields:
    """Of one package beside torch: `fitting` and `fit` (its release for the torch that is named), `wants`, `wrong`.

    `wants` is the torch that the installed release is for, `wrong` why the two do not fit. Where the text names no
    torch, `pairs` has the newest releases with their torch. `row` and `row_lock` are the whole row and its lock.
    """
    named, have = builds_named(fields, facts), fields.get(f"pkg_{name}")
    found: dict[str, str] = {}
    if have is not None:
        found["have"] = f"{name} {have}"
        row = next((each for each in facts.companions if each.package == name and key_of(each.version) == key_of(have)),
                   None)
        if row is not None and row.torch is not None:
            found |= {"wants": f"torch{row.torch}", **wrong(name, have, named, facts)}
            found |= back_to(row.torch, named, facts)
    if not named:
        return {**found, "pairs": newest_pairs(name, facts), "row_lock": f"stackfix lock --with {name}"}
    fits = sorted(releases_for(name, named[0], None, facts), key=key_of)
    if fits:
        found |= {"fitting": f"{name}=={fits[-1]}", "fit": fits[-1], "row": row_of(named[0], facts)}
    lock = lock_of(named, fields.get("python")) or "stackfix lock"
    return {**found, "row_lock": f"{lock} --with '{name}=={fits[-1]}'" if fits else lock}


def wrong(name: str, have: str, named: Sequence[TorchBuild], facts: Facts) -> dict[str, str]:
    """Why a release does not fit the torch that is named, in the matrix's words."""
    from stackfix.matrix.query import companion, companion_fits

    row = companion(facts.matrix, name, have)
    if row is None or not named:
        return {}
    reason = companion_fits(row, named[0])
    return {"wrong": reason} if reason else {"fits_by_number": "yes"}


def back_to(specifier: str, named: Sequence[TorchBuild], facts: Facts) -> dict[str, str]:
    """`other_torch`: the torch that a release is pinned to, as a requirement; {} where it is pinned to none."""
    match = re.fullmatch(r"==(\d+(?:\.\d+)*)(?:\+\w+)?", specifier)
    if match is None or not any(each.version == match[1] for each in linux_builds(facts)):
        return {}
    return {"other_torch": match[1]} if not named or named[0].version != match[1] else {}


def row_of(build: TorchBuild, facts: Facts) -> str:
    """torch with the torchvision and torchaudio that were released with it, as requirements."""
    words = [f"torch=={build.version}"]
    for name in ("torchvision", "torchaudio"):
        fits = releases_for(name, build, None, facts)
        if fits:
            words.append(f"{name}=={max(fits, key=key_of)}")
    return " ".join(words)


def newest_pairs(name: str, facts: Facts) -> str:
    """The newest releases that are pinned to one torch: "0.28.0 for torch 2.13.0, …"."""
    rows = [each for each in facts.companions if each.package == name and (each.torch or "").startswith("==")]
    return ", ".join(f"{each.version} for torch {(each.torch or '')[2:]}" for each in rows[:MOST_PAIRS])


def xformers_built(fields: Fields, facts: Facts) -> Fields:
    """Of `built` and `built_local` ("2.1.0", "cu121") against `have` ("2.1.0+cpu"): what differs, and both ways out.

    One of `cpu_torch`, `other_cuda`, `other_release`, `other_python`; `built_lock` for the torch it was built for,
    `fitting` xformers for the torch that is there.
    """
    built, have = fields.get("built", ""), fields.get("have", "")
    release, _, local = have.partition("+")
    found: dict[str, str] = {}
    if built and have:
        kind = ("other_release" if key_of(release) != key_of(built) else "cpu_torch" if local == "cpu" else
                "other_cuda" if local != fields.get("built_local", local) else "same_torch")
        found = {kind: "yes", "cpu_local": "yes" if local == "cpu" else ""}
    if fields.get("python_built") and fields.get("python_have") and minor(fields["python_built"]) != minor(
            fields["python_have"]):
        found["other_python"] = "yes"
    found |= way_to_built(built, fields.get("built_local", ""), facts)
    there = builds_named({"torch": release, **cuda_of(local)}, facts) if release else ()
    fits = sorted(releases_for(XFORMERS, there[0], None, facts), key=key_of) if there and there[0].cuda != "cpu" else []
    if fits:
        found["fitting"] = f"{XFORMERS}=={fits[-1]}"
        found["there_lock"] = f"{lock_of(there)} --with '{XFORMERS}=={fits[-1]}'"
    elif there and there[0].cuda != "cpu":
        found |= sibling(there[0], facts)
    return {key: value for key, value in found.items() if key and value}


def sibling(build: TorchBuild, facts: Facts) -> dict[str, str]:
    """`sibling`: the xformers for this release of torch whose file on pip's index is for another CUDA, `sibling_cuda`.

    `sibling_lock` locks it with the build of torch for that CUDA, `sibling_index` is the torch index's path for this.
    """
    rows = [each for each in facts.companions
            if each.package == XFORMERS and each.torch == f"=={build.version}" and each.cuda is not None]
    if not rows:
        return {}
    row = max(rows, key=lambda each: key_of(each.version))
    lock = lock_of(builds_named({"torch": build.version, "cuda": row.cuda or ""}, facts))
    return {"sibling": f"{XFORMERS}=={row.version}", "sibling_cuda": row.cuda or "", "have_cuda": build.cuda,
            "sibling_index": f"cu{build.cuda.replace('.', '')}",
            "sibling_lock": f"{lock} --with '{XFORMERS}=={row.version}'" if lock else ""}


def way_to_built(built: str, local: str, facts: Facts) -> dict[str, str]:
    """`built_lock` and `built_index` of the torch that it was built for; {} where the matrix has no such build."""
    builds = builds_named({"torch": built, **cuda_of(local)}, facts) if built else ()
    if not builds:
        return {}
    fits = sorted(releases_for(XFORMERS, builds[0], None, facts), key=key_of)
    more = f" --with '{XFORMERS}=={fits[-1]}'" if fits else ""
    index = f"the torch index's {local}" if local else "pip's index"
    return {"built_lock": f"{lock_of(builds)}{more}", "built_index": index}


def cuda_of(local: str) -> dict[str, str]:
    """`cuda` of a local version: 12.1 of "cu121"; {} where it tells none."""
    match = LOCAL.fullmatch(local)
    if match is None:
        return {}
    return {"cuda": "cpu" if match["cpu"] else f"{match['cuda']}.{match['minor']}"}


def minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def newest_lock(fields: Fields, facts: Facts) -> Fields:
    """`gpu_lock`: locks the CUDA build of the torch that is named, else of the newest."""
    builds = builds_named({"torch": fields["torch"]}, facts) if "torch" in fields else ()
    gpu = [each for each in builds or newest_first(linux_builds(facts))
           if each.cuda != "cpu" and each.index == "default"]
    return {"gpu_lock": lock_of(gpu, fields.get("python")) or "stackfix lock"}


def flash_attn(fields: Fields, facts: Facts) -> Fields:
    """`flash_cure` and `flash_lock`; where a torch is named, `flash_fits`: the releases with wheels for it."""
    python, build = fields.get("python"), next(iter(builds_named(fields, facts)), None)
    if build is None:
        return {"flash_cure": FLASH_INSTALL.format("flash-attn"), "flash_lock": "stackfix lock"}
    lock = lock_of((build,), python) or "stackfix lock"
    fits = sorted(releases_for(FLASH, build, python, facts), key=key_of)
    if not fits:
        return {"flash_cure": FLASH_COMPILE, "flash_lock": lock,
                "flash_fits": f"no wheel of flash-attn is known for torch {build.version}"}
    shown = fits[0] if len(fits) == 1 else f"{fits[0]} to {fits[-1]}"
    return {"flash_fits": f"for torch {build.version} there are wheels of flash-attn {shown}",
            "flash_cure": FLASH_INSTALL.format(f"flash-attn=={fits[-1]}"),
            "flash_lock": f"{lock} --flash-attn {fits[-1]}"}


DERIVE: Mapping[str, Derivation] = {
    "flash-attn": flash_attn,
    "torchvision-pair": partial(pair, "torchvision"), "torchaudio-pair": partial(pair, "torchaudio"),
    "xformers-built": xformers_built, "gpu-lock": newest_lock,
}
