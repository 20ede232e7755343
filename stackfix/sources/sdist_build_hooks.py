"""The build itself: an environment, its requirements, and the hooks of PEP 517, each program bounded."""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import tempfile
import threading
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import CalledProcessError
from typing import TYPE_CHECKING, Any

from stackfix.errors import StackfixError
from stackfix.sources.archives import MAX_METADATA, BadArchive, metadata_in_wheel
from stackfix.sources.errors import SdistBuildFailed
from stackfix.sources.records import IndexFile, IndexSettings
from stackfix.sources.sdist_build_install import (
    NotFollowed,
    installer_environment,
    installer_words,
    lay_out,
    refuse_pinned,
    requirement_line,
    without_secrets,
)
from stackfix.sources.sdist_build_python import build_environment
from stackfix.sources.sdist_build_run import Ended, run_bounded

if TYPE_CHECKING:
    from build import ProjectBuilder

    from stackfix.sources.sdist_build import Allowed

SHOWN = 15              # last lines of what a failed build said
_WIDEST = 300
NO_ROOM = "make room in the temporary folder, or set TMPDIR to one that has some"
_LACKS = re.compile(r"(?:ModuleNotFoundError|ImportError): No module named '?([A-Za-z_][A-Za-z0-9_]*)")
_ODD_ANSWERS = (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError, IndexError)
_OF_THE_DISK = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EROFS))
_FULL = re.compile("|".join(re.escape(os.strerror(number)) for number in sorted(_OF_THE_DISK)), re.IGNORECASE)
_WARNING = threading.Lock()     # the filters of warnings belong to the whole process


def told_metadata(
    file: IndexFile, source: Path, python: str, *, scratch: Path, until: float, allowed: Allowed,
    settings: IndexSettings,
) -> bytes:
    """METADATA as the sdist's own build backend makes it. Raises SdistBuildFailed, Unreachable."""
    return _Build(file, scratch=scratch, until=until, allowed=allowed, settings=settings).metadata(source, python)


class _Build:
    """One sdist's build."""

    def __init__(self, file: IndexFile, *, scratch: Path, until: float, allowed: Allowed,
                 settings: IndexSettings) -> None:
        self._file, self._scratch, self._until = file, scratch, until
        self._allowed, self._settings = allowed, settings
        self._own = build_environment(allowed.environ, scratch)
        self._last: Ended | None = None         # of the programs that ran

    def metadata(self, source: Path, python: str) -> bytes:
        """METADATA, by the hook that makes it alone, else by building the wheel."""
        builder = self._ready(source, python, ())
        more = tuple(self._called(lambda: builder.get_requires_for_build("wheel")))
        if more:        # anew: code that ran may lie in wait in its environment for an installer that has logins
            builder = self._ready(source, python, more)
        out = self._scratch / "out"
        out.mkdir()
        prepared = self._called(lambda: builder.prepare("wheel", out))
        if prepared is not None:
            return self._read(Path(str(prepared)) / "METADATA", out)
        wheel = Path(str(self._called(lambda: builder.build("wheel", out))))
        try:
            with self._opened(wheel, out) as stream:
                return metadata_in_wheel(stream, self._file.project)
        except BadArchive as fault:
            raise self._failed(str(fault)) from None

    def _ready(self, source: Path, python: str, more: tuple[object, ...]) -> ProjectBuilder:
        """The hooks of the sources, in a fresh environment with what they require and `more`."""
        place = tempfile.mkdtemp(prefix="environment-", dir=self._scratch)
        ended = self._run([python, "-I", "-m", "venv", "--without-pip", place], self._own)
        if ended.status != 0:
            raise self._failed("no environment for it can be made", ended)
        programs = Path(place, "Scripts" if os.name == "nt" else "bin")
        path = os.pathsep.join(filter(None, (str(programs), self._allowed.environ.get("PATH"))))
        self._own = {**self._own, "PATH": path}
        builder = self._builder(source, str(programs / "python"))
        try:
            self._install((*builder.build_system_requires, *more), str(programs / "python"))
            refuse_pinned(Path(place), self._settings)
        except NotFollowed as fault:
            raise self._failed(fault.reason, None, fault.hint) from None
        return builder

    def _builder(self, source: Path, python: str) -> ProjectBuilder:
        from build import BuildException, ProjectBuilder

        try:
            with _quiet():
                return ProjectBuilder(source, python, self._hook)
        except (BuildException, *_ODD_ANSWERS) as fault:
            _raise_of_the_disk(fault)
            reason = _line(fault).replace(f"{source}{os.sep}", "")
            raise self._failed(f"its pyproject.toml cannot be used ({reason})") from None

    def _hook(self, cmd: Sequence[str], cwd: str | None = None, extra_environ: Mapping[str, str] | None = None) -> None:
        """Runs one hook's program, as `build` asks for it."""
        told = Path(cmd[-1])        # where pyproject_hooks keeps question and answer
        ours = told.is_dir() and told.parent == Path(tempfile.gettempdir())
        ended = self._run(cmd, {**self._own, **(extra_environ or {})}, Path(cwd) if cwd is not None else None,
                          (told,) if ours else ())
        if ended.status != 0:
            raise CalledProcessError(ended.status, list(cmd))

    def _called(self, call: Any) -> Any:
        """What a hook answers. Raises SdistBuildFailed for one that fails, or whose answer is none."""
        from build import BuildBackendException, BuildException

        try:
            with _quiet():
                return call()
        except BuildBackendException as fault:
            if isinstance(fault.exception, StackfixError):      # our own, of its time limit
                raise fault.exception from None
            _raise_of_the_disk(fault.exception)
            if not isinstance(fault.exception, CalledProcessError):
                raise self._failed(f"its build backend gave no answer that can be read ({_line(fault)})") from None
            raise self._failed("its build ended in an error", self._last) from None
        except (BuildException, *_ODD_ANSWERS) as fault:
            _raise_of_the_disk(fault)
            raise self._failed(f"its build backend gave no answer that can be read ({_line(fault)})") from None

    def _install(self, requires: Iterable[object], python: str) -> None:
        """Installs build requirements, wheels alone, from the indexes of the settings. Raises NotFollowed."""
        lines = [requirement_line(text, self._settings) for text in requires]
        if not lines:
            return
        words = installer_words(python, self._allowed.environ, self._settings)
        own = Path(tempfile.mkdtemp(prefix="installer-", dir=self._scratch))
        try:
            listed = lay_out(own, lines, self._settings)
            environ = installer_environment(self._allowed.environ, own, self._settings)
            ended = self._run([*words, "-r", str(listed)], environ, own)
        finally:
            shutil.rmtree(own, ignore_errors=True)      # before any code of the sdist runs again
        if ended.status != 0:
            raise self._failed(
                "its build requirements cannot be installed from wheels of the index", ended,
                f"put a wheel of what is lacking on an index of yours, or ask for a version of {self._file.project}"
                " that has wheels")

    def _run(self, words: Sequence[str], environ: Mapping[str, str], folder: Path | None = None,
             leftovers: tuple[Path, ...] = ()) -> Ended:
        """How one program ended. Raises SdistBuildFailed where the time is over."""
        if time.monotonic() < self._until:
            self._last = run_bounded(words, environ=environ, folder=folder or self._scratch, until=self._until,
                                     leftovers=(self._scratch, *leftovers))
            if not self._last.too_long:
                return self._last
        seconds = f"{self._allowed.seconds:g}"
        raise self._failed(f"its build was not done after {seconds} seconds", self._last,
                           "give it more with STACKFIX_BUILD_SECONDS, if it is not stuck")

    def _read(self, path: Path, below: Path) -> bytes:
        with self._opened(path, below) as stream:
            content: bytes = stream.read(MAX_METADATA + 1)
        if len(content) > MAX_METADATA:
            raise self._failed(f"its build made METADATA of more than {MAX_METADATA} bytes")
        return content

    def _opened(self, path: Path, below: Path) -> Any:
        """A file that the build made in its folder, opened: no link, no pipe, nothing that lies elsewhere."""
        place = Path(os.path.realpath(path))
        with suppress(OSError):
            descriptor = os.open(place, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
            if stat.S_ISREG(os.fstat(descriptor).st_mode) and Path(os.path.realpath(below)) in place.parents:
                return os.fdopen(descriptor, "rb")
            os.close(descriptor)
        raise self._failed("its build made no metadata where it says")

    def _failed(self, reason: str, ended: Ended | None = None, hint: str | None = None) -> SdistBuildFailed:
        """The error, once the end of what the build said is told."""
        said = without_secrets("" if ended is None else ended.said, self._settings)
        lines = [_plain(line.rstrip()) for line in said.splitlines() if line.strip()][-SHOWN:]
        lacking = next((found[1] for line in reversed(lines) if (found := _LACKS.search(line))), None)
        if lacking == "pkg_resources":      # of setuptools, until it left there
            reason = "its build imports pkg_resources, which newer releases of setuptools do not have"
            hint = (f"an installer would meet the same: take a version of {self._file.project} that has wheels, or an"
                    " index that has a wheel of it")
        elif lacking is not None:
            reason = f"its build imports {lacking}, which its build requirements leave out"
            hint = (f"such sdists are built with --no-build-isolation, beside a {lacking} that is there; lock does not:"
                    f" take a version of {self._file.project} that has wheels, or an index that has a wheel of it")
        elif lines:
            if any(map(_FULL.search, lines)):
                hint = NO_ROOM
            telling = [line for line in lines if not line.lstrip().startswith(("hint:", "[notice]"))] or lines
            reason = f"{reason}: {telling[-1].strip().removeprefix('cause: ')[:_WIDEST]}"
        for line in lines:
            self._allowed.complain(f"  | {line[:_WIDEST]}")
        return SdistBuildFailed(self._file.project, self._file.version, reason, hint)


def _raise_of_the_disk(fault: BaseException) -> None:
    """Raises it again where it is the disk's, and nobody's answer."""
    if isinstance(fault, OSError) and fault.errno in _OF_THE_DISK:
        raise fault


@contextmanager
def _quiet() -> Iterator[None]:
    """Warnings of a build, such as a misspelt key in pyproject.toml, are its author's affair."""
    with _WARNING, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _line(fault: BaseException) -> str:
    """What a library says of a fault, in one line."""
    return _plain(" ".join(str(fault).split()))[:_WIDEST] or type(fault).__name__


def _plain(line: str) -> str:
    """The line with nothing in it that would steer a terminal."""
    return "".join(character if character.isprintable() else " " for character in line)
