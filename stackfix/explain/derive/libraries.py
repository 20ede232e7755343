"""A library that cannot be found: which packages carry it, where they put it, and which torch brings it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stackfix.explain.derive.pins import (
    asked_for,
    builds_named,
    libraries_of,
    linux_builds,
    lock_of,
    newest_first,
    torch_minors,
)
from stackfix.explain.derive.sonames import (
    SITE,
    SONAME,
    builds_bringing,
    carriers,
    cuda_majors,
    cuda_of_package,
    family_of_stem,
    folders,
    openers,
    optional_for,
    searched_since,
)
from stackfix.explain.derive.words import joined, key_of, minor_of, spans
from stackfix.explain.records import Derivation, Facts, Fields
from stackfix.matrix.library_records import LibraryFamily
from stackfix.matrix.records import TorchBuild


def missing_library(fields: Fields, facts: Facts) -> Fields:
    """Of `soname`: `library`, `level`, `packages`, `package`, `requirement`, `conda`, `folder`, `torch_with`.

    `lib_path` is the folder as a path, `lib_lock` locks a torch that brings it, `openers` are libraries that open it by
    its name. `cuda_major` is the CUDA that it is for, where its name tells one only; `torch_cuda` that of the torch
    which the text names, with `other_major` or `cpu_torch` where it has none of this library, `pin` what it requires.
    `unread_wheels`: see unread. `torch_none`: releases for its CUDA, where no torch brings it.
    {} for what is nobody's that is known, and for the driver's.
    """
    name = fields.get("soname", "").rpartition("/")[2].strip("'\"`")
    match = SONAME.fullmatch(name)
    family = family_of_stem(match["stem"], facts.libraries.families) if match else None
    if match is None or family is None or family.level == "driver":
        return {}
    packages = carriers(name, family, facts)
    majors = cuda_majors(packages)
    major = majors[0] if len(majors) == 1 else None
    meant = major or torch_major(fields, facts)
    stems = (match["stem"], *family.stems[:1])
    where = folders(stems, meant or ("12" if majors and "13" not in majors else None), facts)
    found = {
        "library": f"the {family.name}" if " " in family.name else family.name, "level": family.level,
        "file": name, "stem": match["stem"], "cuda_major": major or "", "packages": joined(packages, "or"),
        "conda": family.conda[0] if family.conda else "", "folder": joined(where, "or"),
        "lib_path": f"{fields.get('site') or SITE}/{where[0]}" if where else "",
        "openers": openers(name, facts), "optional_for": optional_for(name, family, facts),
        "torch_searches": searched_since(match["stem"], facts) or "",
        **(chosen(name, packages, meant, family) if packages else unread(family, facts)),
        **of_torch(fields, name, packages, major, facts),
    }
    return {key: value for key, value in found.items() if value}


def torch_major(fields: Fields, facts: Facts) -> str | None:
    """The CUDA major of the torch that the text names."""
    build = next(iter(builds_named(fields, facts)), None)
    cuda = fields.get("cuda") or (build.cuda if build is not None else None)
    return None if cuda in {None, "cpu"} else str(cuda).partition(".")[0]


def chosen(name: str, packages: Sequence[str], major: str | None, family: LibraryFamily) -> dict[str, str]:
    """The wheel that is meant, of the CUDA major that is known, and how to require it."""
    same = [each for each in packages if cuda_of_package(each) == major]
    package = (same or [each for each in packages if cuda_of_package(each) == "12"] or list(packages))[0]
    match = SONAME.fullmatch(name)
    version = match["version"] if match else None
    own = version is not None and family.level == "cudnn"       # its soname counts as the wheel does
    found = {"package": package, "requirement": f"{package}=={version}.*" if own else package}
    return {**found, **({"cudnn_major": version} if own and version else {})}


def unread(family: LibraryFamily, facts: Facts) -> dict[str, str]:
    """`unread_wheels`: wheels of a library that the almanac has no names of; `unread_torch`: what requires one."""
    if any(family_of_stem(match["stem"], (family,)) for each in facts.books.nvidia.sonames
           if (match := SONAME.fullmatch(each))):
        return {}
    names = [f"{project}{suffix}" for project in family.projects for suffix in ("", "-cu13", "-cu12", "-cu11")]
    asked = asked_for(facts)
    builds = {name: [each for each in linux_builds(facts)
                     if each.cuda != "cpu" and name in asked and name in libraries_of(each, facts)] for name in names}
    wheels = [name for name in names if builds[name]]
    asking = torch_minors(tuple(each for name in wheels for each in builds[name] if each.index == "default"))
    shown = f"torch {spans(asking, torch_minors(facts.torch))}" if asking else ""
    return {"unread_wheels": joined(wheels or names, "or"), "unread_torch": shown}


def of_torch(fields: Fields, name: str, packages: Sequence[str], major: str | None, facts: Facts) -> dict[str, str]:
    """Which torch brings the library, and whether the one that the text names does."""
    bringing = builds_bringing(packages, name, facts)
    majors = {cuda_of_package(package) for package in packages}
    builds = bringing or tuple(each for each in linux_builds(facts) if each.cuda.partition(".")[0] in majors)
    found: dict[str, str] = {}
    default = [each for each in builds if each.index == "default"]
    if builds:
        shown = f"torch {spans(torch_minors(default or builds), torch_minors(facts.torch))}"
        found |= {"torch_with": shown, **elsewhere(major, default, facts)} if bringing else {"torch_none": shown}
        found["lib_lock"] = lock_of(newest_first(default or builds), fields.get("python")) or ""
    named = builds_named(fields, facts)
    if named and "torch" in fields:
        found |= beside(named[0], fields, builds, packages, major, facts)
    return found


def elsewhere(major: str | None, default: Sequence[TorchBuild], facts: Facts) -> dict[str, str]:
    """`torch_index`: builds of the torch index for the CUDA major, beside those of the default index."""
    others = [each for each in linux_builds(facts)
              if each.index != "default" and each.cuda.partition(".")[0] == major
              and not any(one.version == each.version for one in default)]
    if not others:
        return {}
    cudas = joined(sorted({each.cuda for each in others}, key=key_of))
    return {"torch_index": f"torch {spans(torch_minors(others), torch_minors(facts.torch))} for CUDA {cudas}"}


def beside(named: TorchBuild, fields: Fields, builds: Sequence[TorchBuild], packages: Sequence[str],
           major: str | None, facts: Facts) -> dict[str, str]:
    """Of the torch that is named: its CUDA, what is wrong with it, which wheel it pins, and the lock with the right."""
    found = {"torch_cuda": named.cuda}
    if named.cuda == "cpu":
        found["cpu_torch"] = "yes"
    elif major is not None and named.cuda.partition(".")[0] != major:
        found["other_major"] = "yes"
    cuda = [each for each in builds if each.version == named.version and each.cuda != "cpu"]
    same = [each for each in cuda if each.cuda == named.cuda] or newest_first(cuda)
    pins = [(each, version) for each, version in libraries_of(named, facts).items() if each in packages]
    for package, version in pins[:1] if named.cuda != "cpu" and named in builds else ():
        found |= {"package": package, "pin": version, "pinned_by": f"torch {named.version}"}
    lock = lock_of(same, fields.get("python"))
    return {**found, **({"lib_lock": lock} if lock else {})}


def nvrtc_release(fields: Fields, facts: Facts) -> Fields:
    """`nvrtc_pin`: the wheel with NVRTC of the CUDA release in `builtins_cuda`; `nvrtc_lock`: a torch for that CUDA."""
    release, package = fields.get("builtins_cuda", ""), fields.get("package", "")
    versions = [each.version for each in facts.matrix.components
                if each.package == package and minor_of(each.toolkit) == release]
    builds = newest_first([each for each in linux_builds(facts) if each.cuda == release])
    found = {"nvrtc_pin": f"{package}=={max(versions, key=key_of)}" if versions else "",
             "nvrtc_lock": lock_of(builds, fields.get("python")) or "" if builds else ""}
    return {key: value for key, value in found.items() if value}


DERIVE: Mapping[str, Derivation] = {"missing-library": missing_library, "nvrtc-release": nvrtc_release}
