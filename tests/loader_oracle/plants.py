"""Features, planted into a graph where chance has not drawn them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.loader_oracle.draft import FOLDERS, Draft, draw_path
from tests.loader_oracle.graph import Definition, Link, Reference, Step

SUBFOLDERS = ("glibc-hwcaps/x86-64-v2", "tls", "x86_64", "glibc-hwcaps/x86-64-v9")


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
