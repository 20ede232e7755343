"""Requirements that cannot be met together: which releases of torch, or of what is built for it, do fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from packaging.version import Version

from stackfix.explain.derive.releases import spread
from stackfix.explain.derive.stack import (
    DEFAULT_INDEX,
    admits,
    builds_meant,
    in_stack,
    linux_builds,
    local_cuda,
    lock_of,
    pins_of,
    project,
    release_of,
    releases,
)
from stackfix.explain.derive.statements import Statement, exact, excludes, stated, version_in
from stackfix.explain.records import Derivation, Facts, Fields
from stackfix.matrix.records import TorchBuild

TORCH = "torch"
YOU = "your own requirement"
MOST_STATEMENTS = 40        # each is compared with each


def conflict(fields: Fields, facts: Facts) -> Fields:
    """Of a resolver's `chain`: `library`, and the two of the stack that want different releases of it.

    `who`, `who_needs`, `other`, `other_needs`. Where torch is one of them: `torch_release`, `torch_pin`, and
    `torch_fits`, all whose pin the other admits, `torch_near`, the nearest of these, `near_pin` and its `lock`; without
    such a release `no_torch`. {} where no two requirements of the chain exclude each other, or none is of the stack.
    """
    statements = stated(fields.get("chain", ""))[:MOST_STATEMENTS]
    for first in statements:
        for second in statements:
            same = first.what == second.what and first.who != second.who
            if same and of_stack(first, second) and excludes(first, second):
                return {**told_pair(first, second), **torch_side(first, second, facts)}
    return {}


def of_stack(first: Statement, second: Statement) -> bool:
    """Whether a dispute is one of the GPU stack: about one of its projects, or between torch and another."""
    return in_stack(first.what) or TORCH in {first.who, second.who}


def told_pair(first: Statement, second: Statement) -> dict[str, str]:
    """The two in words; torch stands first, the user last."""
    one, other = (second, first) if second.who == TORCH or not first.who else (first, second)
    return {"library": one.what, "who": named(one), "who_needs": f"{one.what}{one.spec}",
            "other": named(other), "other_needs": f"{other.what}{other.spec}"}


def named(statement: Statement) -> str:
    """Who requires it, with its version where one release is meant."""
    version = exact(statement.version) or ("" if set(statement.version) & set("<>=!~^,") else statement.version)
    return f"{statement.who} {version}".strip() or YOU


def torch_side(first: Statement, second: Statement, facts: Facts) -> Fields:
    """What of torch goes with the other's requirement, or with the torch that is asked for."""
    for one, other in ((first, second), (second, first)):
        if one.who == TORCH:
            return torch_that_admits(one.what, other.spec, version_in(one.version), facts)
    return companion_side(first, second, facts) if first.what == TORCH else {}


def torch_that_admits(library: str, spec: str, torch: str | None, facts: Facts) -> Fields:
    """The releases of torch whose pin of a library a specifier admits.

    Of the CUDA that `torch` states by its local version, else of the default index.
    """
    cuda = local_cuda(torch or "")
    builds = [each for each in linux_builds(facts)
              if (cuda is None and each.index == DEFAULT_INDEX) or cuda == each.cuda]
    every = releases(builds)
    pinned = {each.version: exact(pins_of(each).get(library, "")) for each in builds}
    fitting = [version for version in every if (pin := pinned[version]) is not None and admits(spec, pin)]
    found: dict[str, str] = {}
    release = release_of(torch or "")
    own = next((each for each in every if release is not None and Version(each) == release), None)
    if own is not None:
        meant = next(each for each in builds if each.version == own)
        found |= {"torch_release": own, "torch_cuda": meant.cuda, "torch_pin": pinned[own] or "",
                  "own_lock": lock_of(meant)}
    if not fitting:
        return {**found, "no_torch": "yes"}
    near = nearest(fitting, release)
    build = next(each for each in builds if each.version == near)
    return {**found, "torch_fits": spread(fitting, every), "torch_near": near, "near_pin": pinned[near] or "",
            "lock": lock_of(build)}


def nearest(versions: Iterable[str], release: Version | None) -> str:
    """The oldest that is not older than a release; where all are, the newest; without a release the newest."""
    ordered = sorted(versions, key=Version)
    later = [each for each in ordered if release is not None and Version(each) >= release]
    return later[0] if later else ordered[-1]


def companion_side(first: Statement, second: Statement, facts: Facts) -> Fields:
    """The companion release for the torch that is asked for, and the torch for the companion that is."""
    for one, other in ((first, second), (second, first)):
        own = exact(one.spec)
        torch = exact(other.spec) or newest_partner(one.who, other.spec, facts)
        meant = builds_meant(torch, None, facts)
        if torch is None or not meant or all(each.package != one.who for each in facts.companions):
            continue
        partner = companion_for(one.who, meant[0], facts)
        found = {"companion": one.who, "torch_asked": torch}
        if partner:
            found |= {"companion_release": partner, "lock": lock_of(meant[0], None, f"--with {one.who}=={partner}")}
        return {**found, **({"torch_of_it": own} if own and builds_meant(own, None, facts) else {})}
    return {}


def newest_partner(package: str, spec: str, facts: Facts) -> str | None:
    """The newest torch that a release of a companion requires exactly, of those that a specifier admits."""
    pinned = (exact(each.torch or "") for each in facts.companions if each.package == package)
    return max((torch for torch in pinned if torch and admits(spec, torch)), key=Version, default=None)


def companion_for(package: str, build: TorchBuild, facts: Facts) -> str | None:
    """The newest release of a companion that fits a build; one that requires just this torch before others.

    Releases before the last that requires just one torch, with a lower bound alone, are left out: vllm 0.2.5 asks for
    torch>=2.1.1, and was compiled for that one.
    """
    from stackfix.matrix.query import companion_fits

    own = [each for each in facts.companions if each.package == package]
    last = max((Version(each.version) for each in own if exact(each.torch or "")), default=None)
    rows = [each for each in own if companion_fits(each, build) is None
            and (exact(each.torch or "") or last is None or Version(each.version) > last)]
    rows.sort(key=lambda each: (exact(each.torch or "") is not None, Version(each.version)), reverse=True)
    return rows[0].version if rows else None


def kept_pin(fields: Fields, facts: Facts) -> Fields:
    """Of "`who` requires `needs`, but you have `library` `has`": `pin`, what it pins, and which torch goes with `has`.

    `partner`: where it is torch that moved, the release of `who` for it, `partner_needs`: what of the stack that pins
    besides, so that it cannot be installed alone. {} where neither is of the GPU stack.
    """
    who, library, has = project(fields["who"]), project(fields["library"]), fields.get("has")
    if not (in_stack(who) or in_stack(library)):
        return {}
    found: dict[str, str] = {"stack": "yes", "who_named": f"{fields['who']} {fields.get('who_version', '')}".strip()}
    pinned = exact(fields.get("needs", "").removeprefix(fields["library"]).strip())
    if pinned:
        found["pin"] = pinned
    if who == TORCH and has:
        torch = fields.get("who_version") or torch_with(library, pinned, facts)
        return {**found, **moved_library(library, has, torch, facts)}
    build = next(iter(builds_meant(has, None, facts)), None) if library == TORCH else None
    partner = companion_for(who, build, facts) if build else None
    if build and partner:
        found |= {"partner": partner, "torch_has": build.version,
                  "lock": lock_of(build, None, f"--with {who}=={partner}")}
        row = next(each for each in facts.companions if each.package == who and each.version == partner)
        pins = [each.partition(";")[0].strip() for each in row.requires]
        found |= {"partner_needs": ", ".join(pins)} if pins else {}
    return found


def torch_with(library: str, pin: str | None, facts: Facts) -> str | None:
    """The newest release of torch (the default index's builds) that pins a library so; uv does not name its release."""
    found = [each.version for each in linux_builds(facts)
             if pin is not None and each.index == DEFAULT_INDEX and exact(pins_of(each).get(library, "")) == pin]
    return max(found, key=Version, default=None)


def moved_library(library: str, has: str, torch: str | None, facts: Facts) -> Fields:
    """Which torch pins the release of a library that is there, and which (`major_fits`) one of its major."""
    told = torch_that_admits(library, f"=={has}", torch, facts)
    major = has.partition(".")[0]
    wider = torch_that_admits(library, f"=={major}.*", torch, facts)
    if "torch_fits" in wider:
        told = {**wider, **told, "major": major, "major_fits": wider["torch_fits"], "major_near": wider["torch_near"],
                "major_pin": wider["near_pin"], "exact": "" if "no_torch" in told else "yes",
                "same_major": "yes" if told.get("torch_pin", "").partition(".")[0] == major else ""}
    return told


def companion_release(fields: Fields, facts: Facts) -> Fields:
    """Of a `requirement` on a companion: `companion_torch`, the torch that it is for, `asked_release`, and `lock`."""
    name, asked = fields.get("project", ""), fields.get("asked", "")
    release = release_of(asked)
    row = next((each for each in facts.companions
                if release is not None and each.package == name and Version(each.version) == release), None)
    torch = exact(row.torch or "") if row else None
    meant = builds_meant(torch, local_cuda(asked), facts)
    if row is None or torch is None or not meant:
        return {}
    return {"companion_torch": torch, "asked_release": row.version,
            "lock": lock_of(meant[0], fields.get("python"), f"--with {name}=={row.version}")}


DERIVE: Mapping[str, Derivation] = {
    "conflict": conflict,
    "kept-pin": kept_pin,
    "companion-release": companion_release,
}
