"""Tiny real wheels, the same bytes each time, and METADATA read from a wheel by parts."""

from __future__ import annotations

import base64
import hashlib
import io
import zipfile
from collections.abc import Callable, Iterable, Mapping

EPOCH = (1980, 1, 1, 0, 0, 0)


def make_wheel(
    filename: str,
    *,
    name: str | None = None,
    version: str | None = None,
    requires: Iterable[str] = (),
    requires_python: str | None = None,
    contents: Mapping[str, str] | None = None,
) -> bytes:
    """A wheel an installer accepts. Name and public version come from the file name unless given."""
    parts = filename.removesuffix(".whl").split("-")
    name = name or parts[0].replace("_", "-")
    version = version or parts[1].partition("+")[0]
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Dist: {line}" for line in requires]
    lines += [f"Requires-Python: {requires_python}"] if requires_python else []
    tags = "".join(f"Tag: {py}-{abi}-{platform}\n" for py in parts[-3].split(".") for abi in parts[-2].split(".")
                   for platform in parts[-1].split("."))
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    members = dict(contents or {f"{name.replace('-', '_').replace('.', '_')}/__init__.py": ""})
    members[f"{info}/METADATA"] = "\n".join(lines) + "\n"
    members[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: stand-in\nRoot-Is-Purelib: true\n{tags}"
    record = "".join(f"{path},sha256={_digest(text)},{len(text.encode())}\n" for path, text in members.items())
    members[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n"
    return zip_bytes(members)


def zip_bytes(members: Mapping[str, str]) -> bytes:
    """A zip archive with fixed times, so that equal members give equal bytes."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, text in members.items():
            archive.writestr(zipfile.ZipInfo(path, EPOCH), text)
    return stream.getvalue()


def read_metadata(read: Callable[[int, int], bytes], size: int) -> bytes:
    """METADATA of the wheel whose bytes start..stop `read` gives. Raises ValueError where it has none."""
    with zipfile.ZipFile(io.BufferedReader(_Spans(read, size), 16384)) as archive:
        for name in archive.namelist():
            if name.count("/") == 1 and name.endswith(".dist-info/METADATA"):
                return archive.read(name)
    raise ValueError("no METADATA in the wheel")


class _Spans(io.RawIOBase):
    """A remote file, read by ranges."""

    def __init__(self, read: Callable[[int, int], bytes], size: int) -> None:
        self._read, self._size, self._position = read, size, 0

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._position = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence] + offset
        return self._position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        stop = min(self._size, self._position + len(buffer))
        body = self._read(self._position, stop) if stop > self._position else b""
        buffer[: len(body)] = body
        self._position += len(body)
        return len(body)


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
