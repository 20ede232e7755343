"""How things stand that a kept answer rests on: files, folders and variables, as short digests.

Part of what answers early (`early`): only the standard library's quickest modules are imported.
"""

from __future__ import annotations

import os
from stat import S_ISFIFO

try:
    from _blake2 import blake2b  # hashlib itself takes 4 ms to import
except ImportError:                 # not every Python has the module
    from hashlib import blake2b

TYPE_CHECKING = False               # typing itself takes 6 ms to import
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    State = Mapping[str, str]       # name -> digest of the file, in one folder

LARGEST = 8 * 1024 * 1024           # of a file that is compared; a lock of 400 packages has 2 MB
SUFFIXES = (".txt", ".toml", ".yml", ".yaml", ".lock")
PROOF = "stack-proof.json"
LOCK_WORDS = ("requirements", "pylock", "constraints", "environment", "conda", "pixi")
# Variables that may steer a lock, by the beginning of their names, their whole names, and their ends in lower case.
PREFIXES = ("PIP_", "UV_", "STACKFIX_", "CONDA", "MAMBA", "PIXI_", "RATTLER_", "SSL_", "XDG_", "LC_", "PYTHON")
NAMES = frozenset((
    "HOME", "USERPROFILE", "HOMEDRIVE", "HOMEPATH", "VIRTUAL_ENV", "NETRC", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
    "REQUEST_METHOD", "NO_COLOR", "TERM", "LANG", "LANGUAGE", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "SYSTEMDRIVE",
))


class Changed(Exception):
    """Something is not as it was, or cannot be told simply: the whole way has to be gone."""


def environment_digest(environ: Mapping[str, str]) -> str:
    """Of all variables that may steer a lock. Tokens of the release API are left out: they change limits, no answer."""
    return variables_digest((name for name in environ if steers(name)), environ)


def steers(name: str) -> bool:
    """Whether a variable may steer a lock."""
    return name.startswith(PREFIXES) or name in NAMES or name.lower().endswith("_proxy")


def variables_digest(names: Iterable[str], environ: Mapping[str, str]) -> str:
    """Of these variables, set or not."""
    said = "\0".join(f"{name}={environ[name]}" if name in environ else name for name in sorted(names))
    return digest_of(said.encode("utf-8", "surrogateescape"))


def folder_state(folder: str) -> State:
    """The digest of each file that a lock may read or replace; empty where there is no folder. Raises Changed."""
    found: dict[str, str] = {}
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if not is_lock_name(entry.name):
                    continue
                if entry.is_symlink() or not (entry.is_file() or entry.is_dir()):
                    raise Changed
                found[entry.name] = digest_of(read_bytes(entry.path)) if entry.is_file() else "folder"
    except FileNotFoundError:
        return {"": "absent"}
    return found


def is_lock_name(name: str) -> bool:
    """Whether a file of that name may be a lock, or the proof of one."""
    return name.endswith(PROOF) or (name.endswith(SUFFIXES) and any(word in name for word in LOCK_WORDS))


def refuse_other_names(name: str) -> None:
    """Raises Changed for a name that no lock has: nothing else is written or removed."""
    if not is_lock_name(name) or "/" in name or os.sep in name:
        raise Changed


def is_ours(path: str) -> bool:
    """Whether nobody else can have written a file, or what is in a folder. Raises OSError where there is none."""
    if not hasattr(os, "geteuid"):
        return True
    found = os.lstat(path)
    return found.st_uid == os.geteuid() and not found.st_mode & 0o022


def state_text(state: State) -> str:
    """The state of a folder as text."""
    return "\n".join(f"{name}\0{digest}" for name, digest in sorted(state.items()))


def file_digest(path: str) -> str:
    """Of the file's content; "-" where there is none. Raises Changed or OSError where it cannot be read."""
    try:
        return digest_of(read_bytes(path))
    except (FileNotFoundError, NotADirectoryError):
        return "-"
    except IsADirectoryError:
        return "folder"


def read_bytes(path: str) -> bytes:
    """The content. Raises Changed for a file that is larger than any that counts, and for a pipe."""
    with open(path, "rb", buffering=0, opener=at_once) as stream:
        if S_ISFIFO(os.fstat(stream.fileno()).st_mode):
            raise Changed       # what is taken out of it here, the whole way would miss
        content = stream.read(LARGEST + 1)
        if content is None or len(content) > LARGEST:
            raise Changed
        return content


def at_once(path: str, flags: int) -> int:
    """The file opened, without waiting for whoever writes into a pipe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def signature_of(stats: Iterable[os.stat_result]) -> str:
    """Of files as the system describes them: one that was written or replaced since has another."""
    return digest_of(repr([(one.st_size, one.st_mtime_ns, one.st_ctime_ns, one.st_ino) for one in stats]).encode())


def digest_of(content: bytes, size: int = 32) -> str:
    """The digest of bytes, as it is kept; `size` of its bytes."""
    return blake2b(content, digest_size=size).hexdigest()
