"""Passwords from the program `keyring`, which pip and uv ask in the same way: `keyring get SERVICE USER`.

Asked only where the settings say so (`keyring-provider = subprocess`), only for a configured index: one whose address
has a user and no password; one whose login is required (uv) or that refuses an answer (pip 26) where no user is named.
What it says is shown nowhere.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from stackfix.sources.address import Address

if TYPE_CHECKING:
    import subprocess

SECONDS = 30.0
LARGEST = 64 * 1024
UV, PIP = "uv", "pip"


class Keyring:
    """The program, or that there is none."""

    def __init__(self, *, like: str = UV, seconds: float = SECONDS) -> None:
        from shutil import which

        self._program, self._like, self._seconds = which("keyring"), like, seconds

    def login(self, service: str, address: Address, user: str | None) -> tuple[str, str] | None:
        """(user, password) for an index, by its address, else by its host; None where none is known.

        The names are those that pip or uv asks for, whoever is told to ask: an entry may be kept by any of them.
        Without `user` the program is asked for both (`--mode creds`, keyring 25.2 and later).
        """
        if self._program is None or not _plain(service) or (user is not None and not _plain(user)):
            return None
        names = (f"{service}/", address.netloc) if self._like == PIP else (
            service, address.netloc, f"{address.scheme}://{address.netloc}")
        for name in names:
            found = self._ask(name, user)
            if found is not None:
                return found
        return None

    def _ask(self, service: str, user: str | None) -> tuple[str, str] | None:
        words = [self._program or "", "get", service, *(["--mode", "creds"] if user is None else [user])]
        said = _output(words, self._seconds)
        lines = [] if said is None else said.splitlines()
        if user is not None:
            return (user, lines[0]) if lines and lines[0] else None
        return (lines[0], lines[1]) if len(lines) > 1 and lines[0] else None


def _output(words: list[str], seconds: float) -> str | None:
    """What the program writes to stdout; None where it fails, is too slow, or writes too much. It asks nobody."""
    import subprocess

    late = threading.Event()
    try:
        with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              start_new_session=True) as child:
            def stop() -> None:
                late.set()
                _stop(child)

            timer = threading.Timer(seconds, stop)
            timer.daemon = True
            timer.start()
            try:
                said = b"" if child.stdout is None else child.stdout.read(LARGEST + 1)
                if len(said) > LARGEST:
                    stop()
                child.wait()
            except BaseException:
                _stop(child)
                raise
            finally:
                timer.cancel()
    except (OSError, ValueError):
        return None
    if child.returncode != 0 or late.is_set():
        return None
    try:
        return said.decode()
    except UnicodeDecodeError:
        return None


def _stop(child: subprocess.Popen[bytes]) -> None:
    """Ends the program with all that it started: a child that holds the pipe open would be waited for."""
    import os
    import signal

    try:
        if hasattr(os, "killpg"):
            os.killpg(child.pid, signal.SIGKILL)
        else:
            child.kill()
    except (ProcessLookupError, PermissionError):
        child.kill()


def _plain(word: str) -> bool:
    """Whether the program takes it for a name and not for an option."""
    return bool(word) and not word.startswith("-") and word.isprintable()
