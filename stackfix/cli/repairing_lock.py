"""Wheels of a lockfile's pins, from the user's index: the files whose sha256 the lock has, and no others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote, urlsplit

from packaging.version import InvalidVersion, Version

from stackfix.cli.repairing_pins import TORCH, Pin, Pins, is_release
from stackfix.cli.repairing_wheels import IndexChoices, target_of
from stackfix.diagnose.situation import View
from stackfix.errors import AnswerIsNo, StackfixError, Unreachable
from stackfix.plan.install_choice import HASH_MISMATCH, Offers, Wanted, unreached_by
from stackfix.plan.records import InstallWheel
from stackfix.plan.rules_conda import Program, WantedConda
from stackfix.quick import replace
from stackfix.resolve.target import TargetView
from stackfix.sources.records import IndexFile


class NoLockedWheel(AnswerIsNo):
    """A pin that no wheel here fills."""

    def what(self) -> str:
        return f"{self.args[0]} {self.args[1]}"


class OtherHash(Unreachable):
    """The index has a pinned release, and not as the file that was locked: one of the two was changed."""

    reference: ClassVar[str] = HASH_MISMATCH

    def __init__(self, pin: str, lock: str) -> None:
        super().__init__(pin, f"the index has it with other sha256 than {lock} pins",
                         f"do not install it before it is clear whether {lock} or the index was changed; where the "
                         "index is right, lock anew with `stackfix lock`")


class LockedChoices:
    """Fills plan.install_choice.Choices with what a lock pins."""

    def __init__(self, index: IndexChoices, view: View, pins: Pins) -> None:
        self._index, self._view, self._pins = index, view, pins

    def offers(self, wanted: tuple[Wanted, ...]) -> Offers:
        """The one set of the lock, whatever release is asked for: whether it cures is seen in the simulation."""
        target = target_of(self._view)
        if target is None:
            return Offers(reason="which wheels this environment's Python takes is not known")
        projects = [each.project for each in wanted]
        if projects == [TORCH] and wanted[0].cuda is not None:          # another build, with all that it lacks
            projects = [TORCH, *self._lacking()]
        try:
            wheels = tuple(self._wheel(each, target) for each in projects)
        except StackfixError as error:
            return Offers(reason=error.what(), unreached=unreached_by(error))
        known = self._view.distributions
        again = {each.project for each in wanted if each.near is not None and each.specifier == f"=={each.near}"}
        if all(each.project in known and each.version == known[each.project].version and each.project not in again
               for each in wheels):
            return Offers(reason=f"{self._pins.name} pins what is there: "
                                 f"{', '.join(f'{each.project} {each.version}' for each in wheels)}")
        return Offers(sets=(wheels,))

    def pinned(self) -> tuple[Wanted, ...]:
        return self._pins.wanted(self._view)

    def lock(self) -> str | None:
        return self._pins.name

    def conda_programs(self) -> tuple[Program, ...]:
        return self._index.conda_programs()

    def of_conda(self, wanted: WantedConda) -> Offers:
        """Such a lock pins nothing of conda's: its packages come again, and in no other release."""
        if wanted.specifier:
            return Offers(reason=f"{self._pins.name} pins no package of conda")
        return self._index.of_conda(wanted)

    def fetch(self, wheel: InstallWheel) -> Path:
        """As IndexChoices: the sha256 that is checked is the lock's."""
        return self._index.fetch(wheel)

    def _lacking(self) -> Iterator[str]:
        """What a torch leads to, as far as the lock pins it and it is not there in that release."""
        from stackfix.matrix.hints import follow
        from stackfix.matrix.load import load_closures

        known, usual = self._view.distributions, follow(dict(load_closures()), (TORCH,))
        for name, pin in self._pins.pins:
            if name != TORCH and (name in usual or name.startswith("nvidia-")) and not (
                    name in known and is_release(known[name].version, pin.version)):
                yield name

    def _wheel(self, project: str, target: TargetView) -> InstallWheel:
        """Raises NoLockedWheel, and what the index raises."""
        pin = self._pins.of(project)
        if pin is None:
            raise NoLockedWheel(self._pins.name, f"does not pin {project}")
        if pin.built:
            raise NoLockedWheel(self._pins.name, f"has {project} in its second step, which is compiled: "
                                                 f"`{self._pins.sync}`")
        file = self._of_address(project, pin) if pin.entry.url else self._of_index(project, pin, target)
        return replace(self._index.wheel(project, file, direct=pin.entry.url is not None),
                       why=f"as {self._pins.name} pins it")

    def _of_address(self, project: str, pin: Pin) -> IndexFile:
        url = pin.entry.url or ""
        name = unquote(urlsplit(url).path.rpartition("/")[2])
        if pin.version is None:
            raise NoLockedWheel(self._pins.name, f"has {project} from {url}, which is no wheel")
        return IndexFile(project=project, filename=name, version=pin.version, sha256=pin.entry.sha256[0], url=url,
                         requires_python=None, yanked=None, size=None, upload_time=None, core_metadata=None, index=url)

    def _of_index(self, project: str, pin: Pin, target: TargetView) -> IndexFile:
        """The best of the lock's own files for this Python."""
        page = self._index.page(project)
        files = [each for text in page.version_strings() if is_same(text, pin.version or "")
                 for each in page.files(text) if each.is_wheel]
        locked = [each for each in files if each.sha256 in pin.entry.sha256]
        if not locked and any(each.sha256 is not None for each in files):
            raise OtherHash(f"{project}=={pin.version}", self._pins.name)
        if not locked:
            raise NoLockedWheel(f"{project}=={pin.version}:", "the index has it without a sha256" if files
                                else f"the index has no wheel of it, and {self._pins.name} pins it")
        fitting = [(rank, each) for each in locked if (rank := target.rank(each.filename)) is not None]
        if not fitting:
            raise NoLockedWheel(f"{project}=={pin.version}:",
                                f"no wheel that {self._pins.name} pins is for this Python")
        return min(fitting, key=lambda each: each[0])[1]


def is_same(text: str, version: str) -> bool:
    """Whether two texts are one version: "1.0" and "1.0.0"."""
    try:
        return Version(text) == Version(version)
    except InvalidVersion:
        return text == version
