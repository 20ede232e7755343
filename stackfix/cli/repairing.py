"""What a plan of repairs asks of the disk: an environment's files, and wheels laid over it. Nothing is changed."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from stackfix.cli.repairing_conda_view import CondaClaims, Link, laid_conda, linked
from stackfix.cli.repairing_files import files_of, going_with
from stackfix.diagnose.situation import View
from stackfix.errors import BadInput, Unreachable
from stackfix.inspect.conda import CondaContent
from stackfix.inspect.environment_files import InstalledFiles
from stackfix.inspect.places import MIB, Root, reason_of
from stackfix.inspect.wheel_environment import ClaimsOver, with_wheel
from stackfix.inspect.wheel_file import open_wheel
from stackfix.plan.effect import Laid
from stackfix.plan.effect_files import ChangedFiles
from stackfix.plan.effect_imports import simulate_hooked, tables
from stackfix.plan.effect_installed import installed_hooks
from stackfix.plan.effect_records import Hooked
from stackfix.plan.effect_wheel import WheelFiles, without_going
from stackfix.plan.records import Install, InstallConda, InstallWheel, Node
from stackfix.quick import replace

TEXT_LIMIT = 8 * MIB            # of a script that is to be written anew


class DiskPlaces:
    """Fills plan.effect_world.Places below a prefix."""

    def __init__(self, root: Root, prefix: str) -> None:
        self.root, self.prefix = root, prefix

    def node(self, path: str) -> Node:
        """What is at a path, its folder's links followed and its own not. Raises Unreachable."""
        target = self.root.link_target(self._absolute(path))
        if target is not None:
            return Node(kind="link", target=target)
        found = self.root.status(self._absolute(path))
        if found is None:
            return Node(kind="absent")
        mode = stat.S_IMODE(found.st_mode)
        if stat.S_ISDIR(found.st_mode):
            return Node(kind="folder", mode=mode)
        if not stat.S_ISREG(found.st_mode):
            return Node(kind="other", mode=mode)
        return Node(kind="file", sha256=self._sha256(path), mode=mode)

    def text(self, path: str) -> str | None:
        """The text of a file; None where there is none, or none that is UTF-8."""
        try:
            return self.root.read_bytes(self._absolute(path), TEXT_LIMIT).decode()
        except (OSError, UnicodeDecodeError):
            return None

    def names(self, folder: str) -> tuple[str, ...]:
        """Names in a folder, sorted."""
        return tuple(each.name for each in self.root.find_entries(self._absolute(folder)))

    def _absolute(self, path: str) -> str:
        return f"{self.prefix}/{path}"

    def _sha256(self, path: str) -> str:
        try:
            with os.fdopen(self.root.open(self._absolute(path)), "rb") as stream:
                return hashlib.file_digest(stream, "sha256").hexdigest() if hasattr(hashlib, "file_digest") else \
                    digest(stream.read)
        except OSError as error:
            raise Unreachable(self._absolute(path), reason_of(error)) from error


def digest(read: Callable[[int], bytes]) -> str:
    """sha256 of what `read` gives, piece by piece."""
    found = hashlib.sha256()
    while piece := read(MIB):
        found.update(piece)
    return found.hexdigest()


class AbsoluteTexts:
    """Fills plan.effect_installed.Texts."""

    def __init__(self, root: Root) -> None:
        self.root = root

    def names(self, folder: str) -> tuple[str, ...]:
        return tuple(each.name for each in self.root.find_entries(folder))

    def text(self, path: str) -> str | None:
        return self.root.find_text(path)


def with_hooks(view: View, root: Root) -> View:
    """The view with what a preload hook of an earlier repair opens; the same where there is none."""
    hooks = installed_hooks(view.environment, AbsoluteTexts(root))
    if not hooks:
        return view
    start, openings = simulate_hooked(view.situation, view.libraries, view.files, tables(hooks, view.files))
    return replace(view, start=start, openings=openings)


class DiskGround:
    """Fills plan.effect.Ground. A context manager: unpacked wheels go with it.

    `fetch` brings the file of a wheel onto our disk, and raises StackfixError where it cannot.
    """

    def __init__(self, view: View, root: Root, fetch: Callable[[InstallWheel], Path], link: Link | None = None) -> None:
        self.root, self._view, self._fetch = root, view, fetch
        self._opened = ExitStack()
        self._laid: dict[tuple[int, Install], tuple[Laid, Laid]] = {}  # with what lies below, which it keeps
        self._hooks = installed_hooks(view.environment, AbsoluteTexts(root))
        self._files: dict[Install, WheelFiles] = {}
        self._link = link
        self._linked: dict[InstallConda, tuple[Root, CondaContent]] = {}

    def __enter__(self) -> DiskGround:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def real(self, folder: str) -> str | None:
        return self.root.find(folder)

    def hooks(self) -> tuple[Hooked, ...]:
        return self._hooks

    def files(self, wheel: Install) -> WheelFiles:
        """What a wheel changes that was laid over something."""
        return self._files[wheel]

    def laid_over(self, below: Laid, wheel: Install) -> Laid:
        """The environment with a wheel, which is unpacked once. Raises BadInput and Unreachable."""
        key = id(below.environment), wheel
        known = self._laid.get(key)
        if known is None or known[0].environment is not below.environment:
            known = self._laid[key] = below, self._lay(below, wheel)
        return known[1]

    def _lay(self, below: Laid, wheel: Install) -> Laid:
        installed = below.installed
        if not isinstance(installed, (InstalledFiles, ClaimsOver, CondaClaims)):
            raise TypeError(installed)
        if isinstance(wheel, InstallConda):
            laid, self._files[wheel] = laid_conda(
                below, installed, wheel, self._linked_by_conda(wheel), self.root)
            return laid
        prefix, file = below.environment.prefix, self._fetch(wheel)
        going = going_with(self.root.host(prefix), wheel, below.environment)
        gone = tuple(f"{prefix}/{each.path}" for each in going)
        hidden = ChangedFiles(below.files, links={}, gone=gone, real=self.real)
        opened = self._opened.enter_context(open_wheel(
            file, environment=below.environment, root=self.root, below=hidden, site=f"{prefix}/{wheel.site}"))
        public = opened.distribution.version.partition("+")[0]
        if (opened.distribution.name, public) != (wheel.project, wheel.version.partition("+")[0]):
            raise BadInput(wheel.file, f"is {opened.distribution.name} {opened.distribution.version}, not "
                           f"{wheel.project} {wheel.version}", "the index names another file than it has")
        claims = ClaimsOver(opened, installed)
        self._files[wheel] = files_of(going, file, opened.claims, prefix)
        environment = without_going(with_wheel(below.environment, opened, claims), gone, frozenset(opened.claims))
        return Laid(environment=environment, installed=claims, files=opened.files)

    def _linked_by_conda(self, step: InstallConda) -> tuple[Root, CondaContent]:
        """The package as conda links it, once. Raises what conda gives reason for."""
        if self._link is None:
            raise BadInput(step.project, "is a package of conda, and nothing here links it")
        if step not in self._linked:
            self._linked[step] = self._opened.enter_context(linked(step, self._view.environment.prefix, self._link))
        return self._linked[step]
