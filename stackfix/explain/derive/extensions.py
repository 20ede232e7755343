"""Which releases of an extension fit which torch, and which lock asks for both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from stackfix.abi.nearest import FLASH, TorchThere, by_symbols
from stackfix.explain.derive.extension_names import extension_name
from stackfix.explain.derive.pins import builds_named, linux_builds, newest_first
from stackfix.explain.derive.words import in_order, key_of, minor_of
from stackfix.explain.records import Derivation, Facts, Fields
from stackfix.matrix.records import TorchBuild

BINARY_ONLY = frozenset({"torchvision", "torchaudio", "vllm", "vllm-flash-attn", "torchcodec", "fbgemm-gpu"})
OF_TORCH = frozenset({"torchvision", "torchaudio", FLASH})    # have files for the Pythons of their torch
MOST_TARGETS = 3                # minors of torch for which releases are told


def extension(fields: Fields, facts: Facts) -> Fields:
    """Of `requester`: its project `ext` (see extension_name); `ext_fits`, releases for the torch that is meant; locks.

    Meant is the torch that the text names, else the minors next to those that `for_minors` lists. `ext_lock` locks the
    first of them with a release of the extension, `ext_release` is that one and `ext_torch` that torch; `back_lock`
    goes back to a torch that the extension is for, `back_torch`. `ext_cure` tells all of it in words. `moved`: torch
    may have been changed since the extension was built.
    """
    named = extension_name(fields, facts)
    if "ext" not in named:
        return named
    found = {**named, **extension_releases({**fields, **named}, facts)}
    moved = fields.get("verdict") == "other-torch" or "scope" in fields
    return {**found, "ext_cure": cure_of(found), **({"moved": "yes"} if moved else {})}


def cure_of(found: Mapping[str, str]) -> str:
    """What to do with an extension that was built for another torch, in words."""
    name, fresh = found["ext"], "--no-cache-dir --no-build-isolation"
    ways: list[str] = []
    if "ext_release" in found:
        both = f"'torch=={found['ext_torch']}' '{name}=={found['ext_release']}'"
        example = "for example: " if ";" in found["ext_fits"] else ""
        ways.append(f"install the release that is for the torch you have ({found['ext_fits']}): "
                    f"{example}pip install {fresh} {both}")
    if "back_torch" in found:
        ways.append(f"take torch {found['back_torch']}, which has what {found['ext_shown']} asks for: "
                    f"{found['back_lock']}")
    if not ways and name in BINARY_ONLY:
        ways.append("install it again together with the torch that its metadata requires: "
                    f"pip install --force-reinstall --no-cache-dir {name} torch")
    if name not in BINARY_ONLY:
        ways.append("compile it against the torch that is there: "
                    f"pip install --force-reinstall --no-deps {fresh} {name}")
    text = "; or ".join(ways)
    return f"{text[0].upper()}{text[1:]}."


def extension_releases(fields: Fields, facts: Facts) -> dict[str, str]:
    """The part of `extension` that asks for releases of `ext`."""
    name, python = fields.get("ext", ""), fields.get("tag") or fields.get("python")
    found: dict[str, str] = {"ext_lock": fields["lock"]} if "lock" in fields else {}
    told: list[str] = []
    for minor in targets(fields, facts):
        pairs = fitting(name, builds_of_minor(minor, fields, facts), python, facts)
        if pairs:
            told.append(f"torch {minor}: {name} {range_of(release for release, _ in pairs)}")
            if "ext_release" not in found:
                release, build = pairs[0] if name in BINARY_ONLY else nearest(pairs, fields.get("ext_version"))
                own = python if follows(name, release, fields) else None
                found |= {"ext_lock": lock_with(build, name, release, own), "ext_release": release,
                          "ext_torch": build.version}
    if told:
        found["ext_fits"] = "; ".join(told)
    return {**found, **going_back(fields, name, python, facts)}


def targets(fields: Fields, facts: Facts) -> list[str]:
    """Minors of torch that are meant: that of the text; else the next ones that lack the function, newer ones first."""
    torch = fields.get("torch")
    every = list(in_order({minor_of(each.version) for each in linux_builds(facts)}))
    if torch is not None:
        return [minor_of(torch)]
    having = [each for each in wanted_minors(fields) if each in every]
    if not having:
        return []
    newer = [each for each in every if key_of(each) > key_of(having[-1])]
    older = [each for each in every if key_of(each) < key_of(having[0])]
    return (newer or older[::-1])[:MOST_TARGETS]


def wanted_minors(fields: Fields) -> tuple[str, ...]:
    """Minors that have what the extension asks for: with its std::string, where its name tells; () where none tells."""
    if fields.get("verdict") == "cut-short":
        return ()
    return in_order((fields.get("string_minors") or fields.get("for_minors") or "").split())


def builds_of_minor(minor: str, fields: Fields, facts: Facts) -> list[TorchBuild]:
    """Builds of a minor: of the release and the CUDA that the text names; else of the default index, newest first."""
    named = builds_named(fields, facts)
    if named and minor_of(named[0].version) == minor:
        return list(named)
    return [each for each in newest_first(linux_builds(facts))
            if minor_of(each.version) == minor and each.index == "default"]


def fitting(name: str, builds: Iterable[TorchBuild], python: str | None,
            facts: Facts) -> list[tuple[str, TorchBuild]]:
    """(release, build) of an extension for builds, newest release first."""
    found: dict[str, TorchBuild] = {}
    for build in builds:
        for release in releases_for(name, build, python, facts):
            found.setdefault(release, build)
    return sorted(found.items(), key=lambda pair: key_of(pair[0]), reverse=True)


def releases_for(name: str, build: TorchBuild, python: str | None, facts: Facts) -> set[str]:
    """Releases of an extension that are for a build: by wheel names, by the symbols of wheels, by an exact pin."""
    from stackfix.matrix.query import companion_fits, flash_attn_wheels_for, other_minor

    if name == FLASH:       # rows of low confidence are of wheels that were built against a nightly of this torch
        pythons = [python] if python is not None and python in build.pythons else build.pythons
        return {wheel.version for each in pythons
                for wheel in flash_attn_wheels_for(facts.matrix, build, each, build.platform)
                if wheel.confidence != "low"}
    rows = {each.version: each for each in facts.companions if each.package == name}
    wheels = facts.books.judged.of(name)
    there = TorchThere(release=build.version, cuda=None if build.cuda == "cpu" else int(build.cuda.partition(".")[0]),
                       string_abi=None if build.cxx11_abi is None else "new" if build.cxx11_abi else "old")
    loading = {each.version.partition("+")[0] for each in by_symbols(wheels, there)}
    read = {each.version.partition("+")[0] for each in wheels}
    declared = {each.version for each in rows.values()
                if each.version not in read and each.torch is not None and each.torch.startswith("==")}
    fits = {each for each in loading | declared
            if each not in rows or (companion_fits(rows[each], build) is None and ruled(name, each, build, facts))}
    own = {each for each in fits if each not in rows or not other_minor(rows[each], build)}
    return own or fits          # those for the very CUDA of this torch before those for another minor of it


def ruled(name: str, version: str, build: TorchBuild, facts: Facts) -> bool:
    """Whether the rules of the matrix, which a lock obeys, admit a torch beside a release of an extension."""
    from packaging.requirements import Requirement

    from stackfix.matrix.query import rules_for

    needs = [Requirement(rule.needs) for rule in rules_for(facts.matrix, name, version)]
    return all(each.specifier.contains(build.version) for each in needs if each.name == "torch")


def nearest(pairs: Sequence[tuple[str, TorchBuild]], version: str | None) -> tuple[str, TorchBuild]:
    """The oldest release that is not older than the one that is there; the oldest where none is known."""
    rising = list(reversed(pairs))
    newer = [pair for pair in rising if version is None or key_of(pair[0]) >= key_of(version)]
    return newer[0] if newer else rising[-1]


def going_back(fields: Fields, name: str, python: str | None, facts: Facts) -> dict[str, str]:
    """`back_torch` and `back_lock`: the torch next to the one there that has what the extension asks for."""
    version, torch = fields.get("ext_version"), fields.get("torch")
    wanted = [each for each in reversed(wanted_minors(fields)) if torch is None or each != minor_of(torch)]
    if torch is not None and wanted and key_of(wanted[-1]) > key_of(torch):
        wanted.reverse()
    for minor in wanted:
        builds = builds_of_minor(minor, {"cuda": fields["cuda"]} if "cuda" in fields else {}, facts)
        pairs = fitting(name, builds, python, facts)
        same = [pair for pair in pairs if version is None or key_of(pair[0]) == key_of(version)]
        if same:
            release, build = same[0]
            own = python if follows(name, release, fields) else None
            return {"back_torch": build.version, "back_lock": lock_with(build, name, release, own)}
    return {}


def follows(name: str, release: str, fields: Fields) -> bool:
    """Whether a release is known to be there for the Python of the text: it is the text's own, or as torch is.

    Of vllm and others the matrix does not tell for which Pythons they have files.
    """
    own = fields.get("ext_version")
    return name in OF_TORCH or (own is not None and key_of(own) == key_of(release))


def range_of(versions: Iterable[str]) -> str:
    """"2.5.8 to 2.8.3", or the one there is."""
    ordered = in_order(set(versions))
    return ordered[0] if len(ordered) == 1 else f"{ordered[0]} to {ordered[-1]}"


def lock_with(build: TorchBuild, name: str, release: str, python: str | None) -> str:
    """The command that locks a build with one release of an extension."""
    own = f" --python {python}" if python in build.pythons else ""
    more = f"--flash-attn {release}" if name == FLASH else f"--with '{name}=={release}'"
    return f"stackfix lock --torch {build.version} --cuda {build.cuda}{own} {more}"


DERIVE: Mapping[str, Derivation] = {"extension": extension}
