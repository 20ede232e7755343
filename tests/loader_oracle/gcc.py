"""A graph's libraries built by gcc and ld from the same description: whether the byte writer makes anything special.

What ld will not do is left out: references to an older version of one's own symbol. A version that a library is linked
against comes from a stub, as it does when the installed library is another than the one at build time.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from tests.loader_oracle.graph import Definition, Library, Reference

OPTIONS = {"DF_SYMBOLIC": "-Bsymbolic", "DF_BIND_NOW": "-znow", "DF_1_NOW": "-znow", "DF_1_GLOBAL": "-zglobal",
           "DF_1_NODEFLIB": "-znodefaultlib"}
CALL = "oracle_call_dlopen"
SOURCE_HEAD = f"""
extern void *dlopen (const char *, int);
__attribute__ ((visibility ("hidden"), used)) void *{CALL} (const char *name, int flags)
{{
  void *volatile handle = dlopen (name, flags);
  return handle;
}}
"""


def compile_library(library: Library, path: Path, scratch: Path) -> int:
    """Build the library; the offset of its call of dlopen."""
    scratch.mkdir(exist_ok=True)
    library = replace(library, defines=tuple(linkable(library.defines)))
    source = scratch / "library.c"
    source.write_text(SOURCE_HEAD + definitions(library.defines) + references(library), encoding="utf-8")
    options = ["-Wl,--hash-style=gnu" if library.gnu_hash else "-Wl,--hash-style=sysv"]
    options += ["-Wl,-soname," + library.soname] if library.soname else []
    text = library.runpath if library.runpath is not None else library.rpath
    if text:
        kind = "--enable-new-dtags" if library.runpath is not None else "--disable-new-dtags"
        options += [f"-Wl,{kind}", f"-Wl,-rpath,{text}"]
    options += [f"-Wl,{OPTIONS[flag]}" for flag in library.flags if flag in OPTIONS]
    if library.versions:
        options.append(f"-Wl,--version-script={version_script(library, scratch / 'script')}")
    stubs = [str(stub(name, library.refers, scratch)) for name in library.needed if "/" not in name]
    gcc("-o", path, source, *options, "-Wl,-zlazy", "-Wl,--no-as-needed", *stubs)
    names = subprocess.run(["nm", str(path)], capture_output=True, text=True, check=True, timeout=60).stdout
    found = re.search(rf"^([0-9a-f]+) t {CALL}$", names, flags=re.MULTILINE)
    if found is None:
        raise RuntimeError(f"{path} has no {CALL}")
    return int(found[1], 16)


def linkable(defines: Iterable[Definition]) -> Iterable[Definition]:
    """Definitions without those that ld calls multiple: of one name, one default or one without a version."""
    taken: set[str] = set()
    for each in sorted(defines, key=lambda each: each.version or "", reverse=True):
        public = each.version is None or each.default
        if not public or each.name not in taken:
            yield each
        if public:
            taken.add(each.name)


def gcc(*words: object) -> None:
    done = subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-fplt", "-fno-builtin", "-nostdlib", *map(str, words)],
                          check=False, timeout=120, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr[:2000])


def definitions(defines: Iterable[Definition]) -> str:
    """C for what a library defines; assembler for what C cannot say."""
    lines = []
    for place, each in enumerate(defines):
        label = f"impl_{place}" if each.version else each.name
        if each.binding == "unique":
            lines.append(f'__asm__ (".data\\n.globl {label}\\n.type {label}, @gnu_unique_object\\n.size {label}, 8\\n'
                         f'{label}: .quad 0\\n.text");')
        else:
            weak = "__attribute__ ((weak)) " if each.binding == "weak" else ""
            lines.append(f"{weak}void {label} (void) {{ }}")
        if each.version:
            at = "@@" if each.default else "@"
            lines.append(f'__asm__ (".symver {label}, {each.name}{at}{each.version}");')
    return "\n".join(lines) + "\n"


def references(library: Library) -> str:
    """C for what a library asks for: pointers for data, calls for what goes through the PLT."""
    own = {each.name for each in library.defines}
    lines, calls = [], []
    for place, each in enumerate(library.refers):
        if each.file is None and each.name in own and (each.version or library.versions):
            continue
        label = f"ref_{place}"
        target = f"{each.name}@{each.version}" if each.file else None
        weak = "__attribute__ ((weak)) " if each.weak else ""
        if target:
            lines.append(f'extern {weak}void {label} (void);\n__asm__ (".symver {label}, {target}");')
        else:
            label = each.name
            lines.append(f"extern {weak}void {label} (void);" if label not in own else "")
            if label in own and any(x.binding == "unique" for x in library.defines if x.name == label):
                lines.append(f"extern char {label};")
        if each.plt and each.name not in own:
            calls.append(f"  {label} ();")
        else:
            lines.append(f"void *pointer_{place} = (void *) &{label};")
    return "\n".join(lines) + "\nvoid calls_all (void)\n{\n" + "\n".join(calls) + "\n}\n"


def version_script(library: Library, path: Path) -> Path:
    """Nodes with the symbols of each."""
    text = ""
    for version in library.versions:
        names = [each.name for each in library.defines if each.version == version]
        text += f"{version} {{ " + (f"global: {'; '.join(names)};" if names else "") + " };\n"
    path.write_text(text, encoding="utf-8")
    return path


def stub(soname: str, refers: Iterable[Reference], scratch: Path) -> Path:
    """A library of that soname that has the versions which are linked against."""
    wanted = dict.fromkeys((each.name, each.version) for each in refers if each.file == soname and each.version)
    path, source, script = scratch / f"stub-{soname}", scratch / "stub.c", scratch / "stub.map"
    text, nodes = "", dict[str, list[str]]()
    for place, (name, version) in enumerate(wanted):
        text += f'void stub_{place} (void) {{ }}\n__asm__ (".symver stub_{place}, {name}@{version}");\n'
        nodes.setdefault(str(version), []).append(name)
    source.write_text(text, encoding="utf-8")
    script.write_text("".join(f"{version} {{ global: {'; '.join(names)}; }};\n" for version, names in nodes.items()),
                      encoding="utf-8")
    gcc("-o", path, source, f"-Wl,-soname,{soname}", *([f"-Wl,--version-script={script}"] if nodes else []))
    return path
