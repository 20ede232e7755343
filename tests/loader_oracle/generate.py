"""Random graphs. A seed gives the same graph each time; each planted feature is put into every n-th graph."""

from __future__ import annotations

import random
from dataclasses import replace

from tests.loader_oracle.draft import FOLDERS, Draft, draw_path
from tests.loader_oracle.graph import Definition, Graph, Library, Reference, Step, features
from tests.loader_oracle.plants import PLANTS


def generate(seed: int, place: int = 0) -> Graph:
    """The graph of one seed, with the feature of its place planted."""
    rng = random.Random(f"{seed}:{place}")      # noqa: S311 - not a secret
    draft = Draft(rng, seed)
    draw_libraries(draft)
    draw_program(draft)
    draw_environment(draft)
    for _ in range(rng.randint(1, 4)):
        draw_step(draft)
    wanted = list(PLANTS)
    for feature in (wanted[place % len(wanted)], wanted[place * 7 // 3 % len(wanted)]):
        if feature not in features(draft.done()):
            PLANTS[feature](draft)
    return draft.done()


def draw_libraries(draft: Draft) -> None:
    """Three to seven sonames with one to three files each; who needs whom points onwards but for some circles."""
    rng = draft.rng
    draft.names = [f"libq{place}.so.{rng.randint(1, 2)}" for place in range(rng.randint(3, 6))]
    symbols = [f"s{place}" for place in range(10)]
    common = {name: rng.sample(symbols, 3) for name in draft.names}
    versions = {name: ("V1", "V2", "V3")[:rng.randint(1, 3)] for name in draft.names if rng.random() < 0.35}
    for place, name in enumerate(draft.names):
        folders = rng.sample(FOLDERS, rng.choice((1, 1, 2, 3)))
        for folder in folders:
            later = draft.names[place + 1:] if draft.chance(0.9) else draft.names
            needed = tuple(rng.sample(later, min(len(later), rng.choice((0, 1, 1, 2, 3)))))
            own = versions.get(name, ())        # a file may be older than what the others were linked against
            own = own if draft.chance(0.7) else own[:rng.randint(0, len(own))]
            defines = draw_definitions(draft, common[name], symbols, own)
            refers = draw_references(draft, needed, common, versions, symbols, defines)
            rpath, runpath = draw_paths(draft)
            draft.libraries.append(Library(
                path=f"{folder}/{name}", soname=name, needed=needed, rpath=rpath, runpath=runpath,
                versions=own,
                defines=defines, refers=refers, gnu_hash=draft.chance(0.8), flags=draw_flags(draft)))


def draw_flags(draft: Draft) -> tuple[str, ...]:
    return tuple(name for name, share in (("DF_SYMBOLIC", 0.06), ("DF_BIND_NOW", 0.05), ("DF_1_NOW", 0.05),
                                          ("DF_1_GLOBAL", 0.05)) if draft.chance(share))


def draw_definitions(
    draft: Draft, common: list[str], symbols: list[str], versions: tuple[str, ...],
) -> tuple[Definition, ...]:
    """The symbols that all files of a soname share, less one at times, and others."""
    rng = draft.rng
    names = [name for name in common if draft.chance(0.93)] + rng.sample(symbols, rng.randint(0, 2))
    found: dict[tuple[str, str | None], Definition] = {}
    for name in names:
        binding = rng.choices(("global", "weak", "unique"), (80, 12, 8))[0]
        if not versions or draft.chance(0.1):
            found[name, None] = Definition(name=name, binding=binding)
            continue
        chosen = [versions[0]] if draft.chance(0.7) else rng.sample(versions, rng.randint(1, len(versions)))
        for place, version in enumerate(chosen):
            default = place == len(chosen) - 1 and draft.chance(0.9)
            found[name, version] = Definition(name=name, version=version, binding=binding, default=default)
    return tuple(found.values())


def draw_references(
    draft: Draft, needed: tuple[str, ...], common: dict[str, list[str]], versions: dict[str, tuple[str, ...]],
    symbols: list[str], defines: tuple[Definition, ...],
) -> tuple[Reference, ...]:
    """What a library asks for: mostly what its dependencies ought to have, its own symbols, at times anything."""
    rng, found = draft.rng, list[Reference]()
    for name in needed:
        for symbol in rng.sample(common[name], rng.randint(0, 2)):
            version = rng.choice(versions[name]) if name in versions and draft.chance(0.25) else None
            version = versions[name][0] if name in versions and version is None and draft.chance(0.7) else version
            found.append(Reference(name=symbol, version=version, file=name if version else None,
                                   weak=draft.chance(0.1), plt=draft.chance(0.5)))
    if draft.chance(0.12):
        found.append(Reference(name=rng.choice(symbols), weak=draft.chance(0.5), plt=draft.chance(0.5)))
    if draft.chance(0.03):
        found.append(Reference(name="nowhere", weak=draft.chance(0.3), plt=draft.chance(0.5)))
    for each in defines:
        if draft.chance(0.4):
            plt = draft.chance(0.5) and each.binding != "unique"
            found.append(Reference(name=each.name, version=each.version, plt=plt))
    rng.shuffle(found)
    # one line for each name and version: a second with another file or binding would be another symbol of the table
    return tuple({(each.name, each.version, each.file): each for each in found}.values())


def draw_paths(draft: Draft) -> tuple[str | None, str | None]:
    """DT_RPATH and DT_RUNPATH."""
    kind = draft.rng.choices(("none", "rpath", "runpath", "both"), (45, 25, 25, 5))[0]
    return (draw_path(draft) if kind in {"rpath", "both"} else None,
            draw_path(draft) if kind in {"runpath", "both"} else None)


def draw_program(draft: Draft) -> None:
    rng = draft.rng
    needed = tuple(rng.sample(draft.names, rng.randint(0, 2)))
    kind = rng.choices(("none", "rpath", "runpath"), (25, 45, 30))[0]
    path = ":".join(f"@/{folder}" for folder in FOLDERS) if draft.chance(0.75) else draw_path(draft)
    draft.program = replace(
        draft.program, needed=needed, rpath=path if kind == "rpath" else None,
        runpath=path if kind == "runpath" else None, gnu_hash=draft.chance(0.8))


def draw_environment(draft: Draft) -> None:
    rng = draft.rng
    if draft.chance(0.65):
        elements = [f"@/{folder}" for folder in rng.sample(FOLDERS, rng.randint(1, 4))]
        if draft.chance(0.1):
            elements.insert(rng.randint(0, len(elements)), "")
        draft.library_path = rng.choice((":", ":", ";")).join(elements)
    if draft.chance(0.1):
        draft.preload = rng.choice((f"@/{rng.choice(draft.libraries).path}", rng.choice(draft.names)))
        if " " in draft.preload:
            draft.preload = None
    draft.bind_now = draft.chance(0.7)


def draw_step(draft: Draft) -> None:
    rng = draft.rng
    library = rng.choice(draft.libraries)
    name = rng.choice((rng.choice(draft.names), rng.choice(draft.names), f"@/{library.path}", f"../{library.path}"))
    caller = rng.choice(draft.libraries).path if draft.chance(0.6) else None
    draft.steps.append(Step(name=name, caller=caller, now=draft.chance(0.6), to_global=draft.chance(0.3),
                            deep_bind=draft.chance(0.12)))
