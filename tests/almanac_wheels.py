"""Small wheels for the almanac: libraries that gcc makes of a list of names, in a folder that the real pip reads."""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from stackfix.almanac.records import ManifestWheel

LINKS = "links.html"
TAGS = "cp311-cp311-manylinux1_x86_64"
needs_gcc = pytest.mark.skipif(platform.machine() != "x86_64" or not shutil.which("gcc"),
                               reason="gcc makes the libraries, for x86_64")


def shared_object(folder: Path, soname: str, names: Sequence[str] = (), *, wants: Sequence[str] = (),
                  needs: Sequence[str] = (), more: str = "", script: str | None = None) -> bytes:
    """A library that defines and wants functions of these names; `more` is C, `script` a version script."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f'void f{place}(void) __asm__("{name}"); void f{place}(void) {{}}' for place, name in enumerate(names)]
    lines += [f'extern void w{place}(void) __asm__("{name}"); void *use{place}(void); '
              f'__attribute__((visibility("hidden"))) void *use{place}(void) {{ return (void *)w{place}; }}'
              for place, name in enumerate(wants)]
    source, target = folder / f"{soname}.c", folder / soname
    source.write_text("\n".join([*lines, more, ""]))
    words = ["gcc", "-shared", "-fPIC", "-nostdlib", "-Wl,--hash-style=gnu", f"-Wl,-soname,{soname}", "-o", str(target),
             str(source), f"-L{folder}", "-Wl,--no-as-needed", *(f"-l:{each}" for each in needs)]
    if script is not None:
        (folder / f"{soname}.map").write_text(script)
        words.append(f"-Wl,--version-script,{folder / f'{soname}.map'}")
    subprocess.run(words, check=True, timeout=60)
    return target.read_bytes()


def wheel(folder: Path, package: str, version: str, files: Mapping[str, bytes], *, tags: str = TAGS,
          build: str | None = None, requires: Sequence[str] = ()) -> ManifestWheel:
    """A wheel in `folder`, and its row of a manifest. The same content gives the same file."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = package.replace("-", "_")
    name = "-".join([stem, version, *([build] if build else []), tags]) + ".whl"
    info = f"{stem}-{version}.dist-info"
    metadata = "".join([f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n",
                        *(f"Requires-Dist: {line}\n" for line in requires)])
    members = {**files, f"{info}/METADATA": metadata.encode(),
               f"{info}/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {tags}\n".encode()}
    record = "".join(f"{member},,\n" for member in [*members, f"{info}/RECORD"])
    with zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in {**members, f"{info}/RECORD": record.encode()}.items():
            archive.writestr(zipfile.ZipInfo(member), content)
    digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    with (folder / LINKS).open("a") as page:        # an index states hashes, a mere folder does not
        page.write(f'<a href="{name}#sha256={digest}">{name}</a><br>\n')
    return ManifestWheel(package=package, version=version, file=name, sha256=digest)


@dataclass(frozen=True, slots=True)
class Releases:
    """A folder of torch releases."""

    folder: Path

    def torch(self, version: str, libraries: Mapping[str, Sequence[str]], *, build: str | None = None) -> ManifestWheel:
        """A release whose libraries export these names."""
        made = self.folder.with_name("made") / version
        return wheel(self.folder, "torch", version, build=build, requires=("filelock",), files={
            f"torch/lib/{soname}": shared_object(made, soname, names) for soname, names in libraries.items()})


def only_from(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes pip know nothing but the wheels of this folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / LINKS).touch()
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CONSTRAINT", "PIP_REQUIRE_HASHES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder / LINKS))
