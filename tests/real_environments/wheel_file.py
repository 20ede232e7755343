"""Wheels written in a moment, for uv to install from a folder."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.loader_oracle.elf_writer import write
from tests.loader_oracle.graph import Library


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """One wheel."""

    name: str
    version: str
    files: Mapping[str, Library | str]
    requires: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()

    def write(self, folder: Path) -> None:
        """The file, in a folder for `--find-links`."""
        spelled = self.name.replace("-", "_")
        info = f"{spelled}-{self.version}.dist-info"
        head = [f"Name: {self.name}", f"Version: {self.version}", *(f"Provides-Extra: {each}" for each in self.extras),
                *(f"Requires-Dist: {each}" for each in self.requires)]
        tag = "cp311-cp311-manylinux_2_17_x86_64" if self.files else "py3-none-any"
        texts = {**self.files, f"{info}/METADATA": "\n".join(["Metadata-Version: 2.1", *head, ""]),
                 f"{info}/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: {str(not self.files).lower()}\nTag: {tag}\n"}
        rows = [f"{info}/RECORD,,"]
        with zipfile.ZipFile(folder / f"{spelled}-{self.version}-{tag}.whl", "w") as archive:
            for path, stated in texts.items():
                content = stated.encode() if isinstance(stated, str) else write(stated)
                archive.writestr(path, content)
                digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
                rows.append(f"{path},sha256={digest},{len(content)}")
            archive.writestr(f"{info}/RECORD", "\n".join([*rows, ""]))
