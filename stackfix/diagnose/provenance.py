"""Where a library outside of the package that ought to give it comes from, and who put it into the loader's way."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from stackfix.diagnose.families_parts import version_of
from stackfix.diagnose.records import FoundVia, LoadedObject
from stackfix.diagnose.situation import View
from stackfix.inspect.environment_records import ActivationScript, Owner
from stackfix.inspect.machine_records import LoadedModule, Toolkit

LIBRARY_PATH, PRELOAD = "LD_LIBRARY_PATH", "LD_PRELOAD"
SYSTEM_FOLDERS = ("/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/")
STANDARD_FOLDERS = ("/lib", "/lib64", "/usr/lib", "/usr/lib64")
HPC_SDK = re.compile(r"/hpc_sdk/[^/]+/(\d+\.\d+)(?:/.*?/?cuda/(\d+\.\d+))?")
SITE = re.compile(r"(/.+?)/lib(?:64)?/python3\.\d+t?/(?:site|dist)-packages/")
CONDA_VARIABLES = re.compile(r"CONDA_PREFIX(?:_\d+)?|MAMBA_ROOT_PREFIX|CONDA_ROOT")
VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
ASSIGNED = re.compile(r"(?:export\s+|setenv\s+)?(\w+)[=\s]\s*(.+)")
WORDS = re.compile(r"[:;=\"'\s]+")
# names of environment modules, where the folder of the software is called otherwise
OTHER_NAMES = {"nvhpc": ("hpc_sdk",), "cudatoolkit": ("cuda",), "cuda-toolkit": ("cuda",),
               "nvidia": ("cuda", "hpc_sdk")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """How a file comes to be taken."""

    how: str                        # "LD_LIBRARY_PATH names /opt/cuda/lib64"
    variable: str | None            # "LD_LIBRARY_PATH"
    lines: tuple[str, ...]          # evidence: the variable, who set it, what the folder belongs to
    undo: tuple[str, ...]           # how to take it away, by hand


def trace(view: View, object_: LoadedObject | None, path: str, via: FoundVia) -> Provenance:
    """Who put the file at `path` into the loader's way."""
    belongs = tuple(f"{folder_of(path)} belongs to {each}" for each in filter(None, (place_of(view, path),)))
    if object_ is not None and is_preloaded(view, object_):
        value = view.situation.loader.preload
        set_by, undo = who_set(view, PRELOAD, path)
        line = f"{PRELOAD}={value}" if value else f"/etc/ld.so.preload names {path}"
        return Provenance(how=f"{PRELOAD} loads {path} before anything else", variable=PRELOAD if value else None,
                          lines=(line, *set_by, *belongs),
                          undo=(*undo, "unset LD_PRELOAD" if value else f"sudo edit /etc/ld.so.preload: remove {path}"))
    if via.step == "LD_LIBRARY_PATH":
        return of_library_path(view, via.element or "", belongs)
    if via.step == "ld.so.cache":
        return of_cache(view, path, belongs)
    if via.step == "default folder":
        return Provenance(how=f"{folder_of(path)} is one of the loader's own folders", variable=None, lines=belongs,
                          undo=tuple(f"{each}, or install the same version there" for each in removal(view, path)))
    if via.step in {"RPATH", "RUNPATH"}:
        return Provenance(how=f"{via.step} of {via.owner} leads to {folder_of(path)}", variable=None, lines=belongs,
                          undo=())
    return Provenance(how=f"{path} was loaded by its path", variable=None, lines=belongs, undo=())


def of_library_path(view: View, folder: str, belongs: tuple[str, ...]) -> Provenance:
    """An element of LD_LIBRARY_PATH."""
    value = view.situation.loader.library_path or ""
    elements = re.split("[:;]", value)
    number = next((number for number, each in enumerate(elements, 1) if each.rstrip("/") == folder.rstrip("/")), 0)
    place = f" (element {number} of {len(elements)} is {folder or 'empty: the current folder'})" if number else ""
    set_by, undo = who_set(view, LIBRARY_PATH, folder)
    if not set_by:
        set_by = ("no file of the environment sets it: a shell's start-up file, a job script or a service does",)
    what = f"take {folder or 'the empty element'} out of {LIBRARY_PATH}"
    return Provenance(how=f"{LIBRARY_PATH} names {folder or 'the current folder'}", variable=LIBRARY_PATH,
                      lines=(f"{LIBRARY_PATH}={value}{place}", *set_by, *belongs),
                      undo=(*undo, f"unset {LIBRARY_PATH}" if len(elements) == 1 else what))


def of_cache(view: View, path: str, belongs: tuple[str, ...]) -> Provenance:
    """An entry of ld.so.cache."""
    folder = folder_of(path)
    named = [each for each in view.situation.configured if each.folder == folder]
    lines = tuple(f"{each.file}, line {each.line}: {each.folder}" for each in named)
    undo = tuple(f"remove the line {each.folder} from {each.file}, then run: sudo ldconfig" for each in named
                 if not is_standard(folder))
    return Provenance(how=f"ld.so.cache has it in {folder}" + (f", which {named[0].file} names" if named else ""),
                      variable=None, lines=(*lines, *belongs),
                      undo=undo or tuple(f"{each}, then run: sudo ldconfig" for each in removal(view, path)))


def removal(view: View, path: str) -> Iterator[str]:
    """How a library leaves the system; nothing for what the system itself lives on, such as libstdc++."""
    family = view.family_of(path.rpartition("/")[2])
    if family is not None and family.level != "environment":
        yield f"remove the system's package that owns {path}"


def is_standard(folder: str) -> bool:
    """Whether a folder is the system's own: its configuration names it on some systems, and must go on to."""
    parent, _, name = folder.rpartition("/")
    return folder in STANDARD_FOLDERS or (parent in STANDARD_FOLDERS and name.endswith("-linux-gnu"))


def is_preloaded(view: View, object_: LoadedObject) -> bool:
    """Whether an object came with LD_PRELOAD or /etc/ld.so.preload."""
    names = preloads(view)
    return bool(names) and not object_.dlopened and bool(names & {object_.path, *object_.names})


def preloads(view: View) -> frozenset[str]:
    """What is to be loaded before anything else."""
    loader = view.situation.loader
    if not loader.preload and not loader.machine.preload_file:
        return frozenset()
    return frozenset((*(loader.preload or "").replace(":", " ").split(), *loader.machine.preload_file))


# --- who set a variable ---


def who_set(view: View, variable: str, wanted: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(what names the folder or file in the variable, how to take that back)."""
    lines, undo = list[str](), list[str]()
    for module in modules_of(view.machine.modules, wanted):
        lines.append(f"environment module {module.name} is loaded" + (f" ({module.file})" if module.file else ""))
        undo.append(f"module unload {module.name}")
    for script, number, text in script_lines(view, variable, wanted):
        lines.append(f"{script.path}, line {number}: {text}")
        undo.append(f"change line {number} of {script.path}, then activate the environment again")
    conda = view.environment.conda
    if conda is not None and any(name == variable and names(value, wanted) for name, value in conda.variables):
        lines.append(f"conda sets it when the environment is activated: {dict(conda.variables)[variable]}")
        undo.append(f"conda env config vars unset {variable} -p {view.environment.prefix}")
    for kernel in view.environment.kernels:
        if any(name == variable and names(value, wanted) for name, value in kernel.variables):
            lines.append(f"the Jupyter kernel {kernel.name} sets it ({kernel.path})")
            undo.append(f'take it out of "env" in {kernel.path}, then restart the kernel')
    return tuple(lines), tuple(undo)


def modules_of(modules: Iterable[LoadedModule], path: str) -> Iterator[LoadedModule]:
    """Loaded environment modules whose name and version are in a path: cuda/12.1 for /apps/cuda/12.1.0/lib64."""
    text = path.lower()
    for each in modules:
        name, *rest = each.name.lower().split("/")
        stems = (name, *OTHER_NAMES.get(name, ()))
        version = rest[-1] if rest else ""
        told = not version or any(re.search(rf"(?<![\d.]){re.escape(part)}(?!\d)", text)
                                  for part in {version, ".".join(version.split(".")[:2])})
        if name and told and any(stem in text for stem in stems):
            yield each


def script_lines(view: View, variable: str, wanted: str) -> Iterator[tuple[ActivationScript, int, str]]:
    """Lines of activation scripts that put a folder into a variable; other variables in them are followed."""
    prefix = view.environment.prefix
    for script in view.environment.activation:
        if script.phase != "activate":
            continue
        known = {**view.variables, "CONDA_PREFIX": prefix, "VIRTUAL_ENV": prefix, variable: ""}
        for number, text in script.lines:
            assigned = ASSIGNED.match(text.strip())
            value = expand(assigned[2], known) if assigned else ""
            if assigned and assigned[1] == variable and names(value, wanted):
                yield script, number, text.strip()
            elif assigned and assigned[1] != variable:
                known[assigned[1]] = value.strip("\"'")


def expand(text: str, known: Mapping[str, str]) -> str:
    """Shell variables put in, those that are not known left as they are."""
    return VARIABLE.sub(lambda found: known.get(found[1] or found[2], found[0]), text)


def names(value: str, wanted: str) -> bool:
    """Whether one element of a variable's value is the folder or file."""
    return wanted.rstrip("/") in {each.rstrip("/") for each in WORDS.split(value) if each}


# --- what a folder belongs to ---


def place_of(view: View, path: str) -> str | None:
    """What a file belongs to, in words: a package, a toolkit, another environment; None where nothing tells."""
    return next(places_of(view, path), None)


def places_of(view: View, path: str) -> Iterator[str]:
    """What a file belongs to, the surest first."""
    owner = owner_of(view, path)
    if owner is not None:
        yield f"the environment's package {owner.name} {owner.version} ({owner.manager})"
    if match := HPC_SDK.search(path):
        yield f"the NVIDIA HPC SDK {match[1]}" + (f" with CUDA {match[2]}" if match[2] else "")
    toolkit = toolkit_of(view, path)
    if toolkit is not None:
        yield f"the CUDA toolkit {toolkit.version or 'of unknown version'} in {toolkit.path}"
    if view.is_own(path):
        yield "the environment, but no package of it has the file"
    if match := SITE.match(path):
        yield f"another environment, {match[1]}"
    for prefix in conda_prefixes(view):
        if path.startswith(f"{prefix}/"):
            yield f"another conda environment, {prefix}"
    if path.startswith(SYSTEM_FOLDERS):
        yield "the system"


def conda_prefixes(view: View) -> Iterator[str]:
    """Prefixes of other conda environments that variables name, the deepest first."""
    found = {value.rstrip("/") for name, value in view.variables.items() if CONDA_VARIABLES.fullmatch(name)}
    executable = view.variables.get("CONDA_EXE", "")
    if executable.endswith("/bin/conda"):
        found.add(executable.removesuffix("/bin/conda"))
    yield from sorted(found - {view.environment.prefix, ""}, key=len, reverse=True)


def toolkit_of(view: View, *paths: str) -> Toolkit | None:
    """The CUDA toolkit that a file is part of."""
    return next((each for each in view.machine.toolkits for path in paths
                 if path.startswith((f"{each.path}/", f"{each.real_path}/"))), None)


def owner_of(view: View, *paths: str) -> Owner | None:
    """The package of the environment that installed a file."""
    return next(iter(view.owners(*paths)), None)


def version_at(view: View, path: str, real_path: str, soname: str | None) -> str | None:
    """Version of a library: of its file's name, of its package, of its toolkit; None where nothing tells."""
    found = version_of(real_path, soname, owner_of(view, path, real_path), view.family_of(soname or ""))
    if found is None:
        toolkit = toolkit_of(view, path, real_path)
        family = view.family_of(soname or "")
        return toolkit.version if toolkit and family and family.level == "cuda" else None
    return found


def describe(view: View, path: str, real_path: str | None = None) -> str:
    """A file with what it belongs to: "/opt/cuda/lib64/libx.so.1 (the CUDA toolkit 12.2.2 in /opt/cuda)"."""
    owner = owner_of(view, path, real_path or path)
    what = f"{owner.name} {owner.version}" if owner else place_of(view, real_path or path)
    return f"{path} ({what})" if what else path


def named(owner: Owner | None) -> str | None:
    """A package with its version: "torch 2.3.1"."""
    return f"{owner.name} {owner.version}" if owner else None


def folder_of(path: str) -> str:
    return path.rpartition("/")[0] or "/"
