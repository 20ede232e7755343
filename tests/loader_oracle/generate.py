"""Random graphs. A seed gives the same graph each time; each planted feature is put into every n-th graph."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tests.loader_oracle.graph import Definition, Graph, Library, Link, Reference, Step, features

FOLDERS = ("d0", "d1", "d2", "d3", "d 4")
SUBFOLDERS = ("glibc-hwcaps/x86-64-v2", "tls", "x86_64", "glibc-hwcaps/x86-64-v9")


@dataclass(slots=True)
class Draft:
    """A graph that is still being drawn. Names are sonames; a soname may have several files."""

    rng: random.Random
    seed: int
    names: list[str] = field(default_factory=list)
    libraries: list[Library] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    cached: list[str] = field(default_factory=list)
    program: Library = field(default_factory=lambda: Library(path="bin/program"))
    library_path: str | None = None
    preload: str | None = None
    bind_now: bool = True
    cwd: str = "cwd"

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def pick(self) -> int:
        """Place of one library."""
        return self.rng.randrange(len(self.libraries))

    def change(self, place: int, **fields: object) -> None:
        self.libraries[place] = replace(self.libraries[place], **fields)     # type: ignore[arg-type]

    def done(self) -> Graph:
        return Graph(
            seed=self.seed, program=self.program, libraries=tuple(self.libraries), links=tuple(self.links),
            steps=tuple(self.steps), cached=tuple(self.cached), library_path=self.library_path, preload=self.preload,
            bind_now=self.bind_now, cwd=self.cwd,
        )


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


def draw_path(draft: Draft) -> str:
    folders = draft.rng.sample(FOLDERS, draft.rng.randint(1, 2))
    forms = ("@/{}", "$ORIGIN/../{}", "${{ORIGIN}}/../{}/", "@/cwd/../{}")
    return ":".join(draft.rng.choice(forms).format(folder) for folder in folders)


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


# --- features, planted where chance has not drawn them ---


def plant_runpath(draft: Draft) -> None:
    draft.change(draft.pick(), rpath=None, runpath=draw_path(draft))


def plant_rpath(draft: Draft) -> None:
    draft.change(draft.pick(), rpath=draw_path(draft), runpath=None)


def plant_both(draft: Draft) -> None:
    draft.change(draft.pick(), rpath=draw_path(draft), runpath=draw_path(draft))


def plant_program_rpath(draft: Draft) -> None:
    draft.program = replace(draft.program, rpath=draw_path(draft), runpath=None)


def plant_library_path(draft: Draft) -> None:
    draft.library_path = f"@/{draft.rng.choice(FOLDERS)}"


def plant_empty_element(draft: Draft) -> None:
    library = draft.rng.choice(draft.libraries)
    draft.libraries.append(replace(library, path=f"cwd/{library.path.rpartition('/')[2]}"))
    draft.library_path = f":{draft.library_path or '@/d0'}"


def plant_semicolon(draft: Draft) -> None:
    draft.library_path = f"@/{draft.rng.choice(FOLDERS)};{draft.library_path or '@/d1'}"


def plant_origin(draft: Draft) -> None:
    draft.change(draft.pick(), rpath=None, runpath="$ORIGIN:$ORIGIN/../d1:$ORIGIN/../d2")


def plant_link(draft: Draft) -> None:
    """A library reached through a link in another folder: $ORIGIN is the link's folder."""
    library = draft.rng.choice(draft.libraries)
    name = library.path.rpartition("/")[2]
    taken = {each.path for each in draft.libraries} | {each.path for each in draft.links}
    folder = next((each for each in ("links", *FOLDERS) if f"{each}/{name}" not in taken), None)
    if folder:
        draft.links.append(Link(path=f"{folder}/{name}", target=f"../{library.path}"))
        draft.steps.append(Step(name=f"@/{folder}/{name}"))


def plant_copies(draft: Draft) -> None:
    library = draft.rng.choice(draft.libraries)
    name = library.path.rpartition("/")[2]
    taken = {each.path for each in draft.libraries}
    folder = next((each for each in (*FOLDERS, "d5") if f"{each}/{name}" not in taken), None)
    if folder:
        draft.libraries.append(replace(library, path=f"{folder}/{name}", defines=library.defines[:-1]))


def plant_no_soname(draft: Draft) -> None:
    place = draft.pick()
    draft.change(place, soname=None)
    draft.steps.insert(0, Step(name=f"@/{draft.libraries[place].path}"))


def plant_versions(draft: Draft) -> None:
    """A library with two versions of a symbol, and one that asks for each."""
    provider, requester = draft.pick(), draft.pick()
    soname = draft.libraries[provider].soname or "libq0.so.1"
    asked = draft.rng.choice(("V1", "V2", "V3"))
    draft.change(provider, versions=("V1", "V2"), defines=(
        Definition(name="both", version="V1", default=False), Definition(name="both", version="V2"),
        Definition(name="s1", version="V1")))
    others = tuple(each for each in draft.libraries[provider].refers if each.file or each.version is None)
    draft.change(provider, refers=others)
    if provider != requester:
        draft.change(requester, needed=tuple(dict.fromkeys((*draft.libraries[requester].needed, soname))), refers=(
            *draft.libraries[requester].refers, Reference(name="both", version=asked, file=soname),
            Reference(name="both")))
    draft.steps.append(Step(name=f"@/{draft.libraries[requester].path}"))


def plant_weak_reference(draft: Draft) -> None:
    place = draft.pick()
    extra = Reference(name="nowhere", weak=True)
    draft.change(place, refers=(*(x for x in draft.libraries[place].refers if x.name != "nowhere"), extra))


def plant_weak_definition(draft: Draft) -> None:
    place = draft.pick()
    draft.change(place, defines=(*draft.libraries[place].defines, Definition(name="feeble", binding="weak")),
                 refers=(*draft.libraries[place].refers, Reference(name="feeble")))


def plant_unique(draft: Draft) -> None:
    """Two libraries, opened one after the other, each with its own copy of a unique symbol."""
    for _ in range(2):
        library = draft.libraries[place := draft.pick()]
        if not any(each.name == "only" for each in library.defines):
            draft.change(place, defines=(*library.defines, Definition(name="only", binding="unique")),
                         refers=(*library.refers, Reference(name="only")))
        draft.steps.append(Step(name=f"@/{library.path}"))


def plant_call_by_name(draft: Draft) -> None:
    """dlopen by name from a library whose RUNPATH alone knows the folder."""
    place, target = draft.pick(), draft.rng.choice(draft.libraries)
    folder = target.path.rpartition("/")[0]
    draft.change(place, runpath=f"@/{folder}", rpath=None)
    draft.steps[:0] = [Step(name=f"@/{draft.libraries[place].path}"),
                       Step(name=target.path.rpartition("/")[2], caller=draft.libraries[place].path)]


def plant_absolute(draft: Draft) -> None:
    draft.steps.insert(0, Step(name=f"@/{draft.rng.choice(draft.libraries).path}"))


def plant_global(draft: Draft) -> None:
    draft.steps.insert(0, Step(name=f"@/{draft.rng.choice(draft.libraries).path}", to_global=True))


def plant_deep_bind(draft: Draft) -> None:
    draft.steps.append(Step(name=f"@/{draft.rng.choice(draft.libraries).path}", deep_bind=True))


def plant_lazy(draft: Draft) -> None:
    """A missing function: RTLD_LAZY opens the library, RTLD_NOW does not."""
    place = draft.pick()
    draft.bind_now = False
    draft.change(place, refers=(*(x for x in draft.libraries[place].refers if x.name != "nowhere"),
                                Reference(name="nowhere", plt=True)))
    path = f"@/{draft.libraries[place].path}"
    draft.steps[:0] = [Step(name=path, now=False), Step(name=path)][::draft.rng.choice((1, -1))]


def plant_hwcaps(draft: Draft) -> None:
    library = draft.rng.choice(draft.libraries)
    folder, _, name = library.path.rpartition("/")
    taken = {each.path for each in draft.libraries} | {each.path for each in draft.links}
    path = f"{folder.split('/')[0]}/{draft.rng.choice(SUBFOLDERS)}/{name}"
    if path not in taken:
        draft.libraries.append(replace(library, path=path, defines=library.defines[:-1]))
    draft.library_path = f"@/{folder.split('/')[0]}:{draft.library_path or '@/d2'}"


def plant_nodeflib(draft: Draft) -> None:
    place = draft.pick()
    needed = (*draft.libraries[place].needed, draft.rng.choice(("libz.so.1", "libm.so.6", *draft.names)))
    draft.change(place, flags=(*draft.libraries[place].flags, "DF_1_NODEFLIB"), needed=tuple(dict.fromkeys(needed)))
    draft.steps.append(Step(name=f"@/{draft.libraries[place].path}"))


def plant_symbolic(draft: Draft) -> None:
    place = draft.pick()
    library = draft.libraries[place]
    own = tuple(Reference(name=each.name, version=each.version) for each in library.defines)
    refers = (*own, *(each for each in library.refers if (each.name, each.version) not in {
        (mine.name, mine.version) for mine in own}))
    draft.change(place, flags=(*library.flags, "DF_SYMBOLIC"), refers=refers)
    draft.steps.append(Step(name=f"@/{library.path}"))


def plant_cache(draft: Draft) -> None:
    chosen = {each.soname: each.path for each in draft.libraries if each.soname and draft.chance(0.7)}
    draft.cached = list(chosen.values()) or [draft.libraries[0].path]
    if draft.chance(0.5):
        draft.library_path = None


def plant_preload(draft: Draft) -> None:
    library = next((each for each in draft.libraries if " " not in each.path), None)
    if library:
        draft.preload = f"@/{library.path}:libabsent.so"


def plant_missing_library(draft: Draft) -> None:
    place = draft.pick()
    draft.change(place, needed=(*draft.libraries[place].needed, "libabsent.so.9"))


def plant_missing_symbol(draft: Draft) -> None:
    """Several at once: which one is named first depends on the order of relocation."""
    for name in ("nowhere", "never"):
        place = draft.pick()
        rest = [each for each in draft.libraries[place].refers if each.name != name]
        rest.insert(draft.rng.randint(0, len(rest)), Reference(name=name, plt=draft.chance(0.5)))
        draft.change(place, refers=tuple(rest))


def plant_foreign(draft: Draft) -> None:
    place = draft.pick()
    library = draft.libraries[place]
    kind = draft.rng.choice(({"machine": 183}, {"bits": 32}))
    draft.libraries.append(replace(library, path=f"foreign/{library.path.rpartition('/')[2]}", **kind))     # type: ignore[arg-type]
    draft.library_path = f"@/foreign:{draft.library_path or '@/d0'}"


def plant_garbage(draft: Draft) -> None:
    library = draft.rng.choice(draft.libraries)
    draft.libraries.append(replace(library, path=f"garbage/{library.path.rpartition('/')[2]}", garbage=True))
    draft.library_path = f"{draft.library_path or '@/d0'}:@/garbage"


def plant_old_hash(draft: Draft) -> None:
    draft.change(draft.pick(), gnu_hash=False)


def plant_local(draft: Draft) -> None:
    """Opened early by absolute path: its soname ends later searches, its symbols stay its own (rule 6)."""
    library = draft.rng.choice(draft.libraries)
    draft.steps[:0] = [Step(name=f"@/{library.path}"), Step(name=library.soname or draft.names[0])]


PLANTS: dict[str, Callable[[Draft], None]] = {
    "RPATH": plant_rpath, "RUNPATH": plant_runpath, "RPATH and RUNPATH together": plant_both,
    "program RPATH": plant_program_rpath, "LD_LIBRARY_PATH": plant_library_path, "empty element": plant_empty_element,
    "semicolon": plant_semicolon, "$ORIGIN": plant_origin, "symbolic link": plant_link, "several copies": plant_copies,
    "no soname": plant_no_soname, "version script": plant_versions, "versioned reference": plant_versions,
    "weak definition": plant_weak_definition, "weak reference": plant_weak_reference, "unique": plant_unique,
    "dlopen by name from a library": plant_call_by_name, "dlopen by absolute path": plant_absolute,
    "RTLD_LOCAL": plant_local, "RTLD_GLOBAL": plant_global, "RTLD_DEEPBIND": plant_deep_bind, "RTLD_LAZY": plant_lazy,
    "RTLD_NOW": plant_absolute, "hwcaps folder": plant_hwcaps, "NODEFLIB": plant_nodeflib,
    "DT_SYMBOLIC": plant_symbolic, "ld.so.cache": plant_cache, "LD_PRELOAD": plant_preload,
    "missing library": plant_missing_library, "missing symbol": plant_missing_symbol, "foreign file": plant_foreign,
    "garbage": plant_garbage, "DT_HASH": plant_old_hash,
}
