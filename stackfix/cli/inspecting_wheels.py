"""Wheels that are judged before they are installed: the environment as it would be with them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from stackfix.errors import AnswerIsNo, BadInput
from stackfix.inspect.environment_records import Environment
from stackfix.inspect.machine_records import Machine
from stackfix.inspect.places import Root
from stackfix.inspect.records import Files
from stackfix.inspect.wheel_environment import Claims, ClaimsOver, with_wheel
from stackfix.inspect.wheel_file import WheelOverlay, open_wheel


class WheelDoesNotFit(AnswerIsNo):
    """An installer would refuse the wheel in this environment."""

    reference = "wheel-does-not-fit"

    def __init__(self, *, wheel: str, is_for: str, has: str) -> None:
        super().__init__(wheel, is_for, has)
        self.wheel, self.is_for, self.has = wheel, is_for, has

    def what(self) -> str:
        return f"--wheel {self.wheel}: is for {self.is_for}, and the environment has {self.has}: no installer takes it"

    def next_step(self) -> str:
        return "take the project's wheel for this Python and platform"


@dataclass(frozen=True, slots=True, kw_only=True)
class Laid:
    """An environment with what lies over it."""

    environment: Environment
    installed: Claims
    files: Files


@contextmanager
def wheels_over(below: Laid, wheels: tuple[str, ...], *, root: Root, machine: Machine, deep: bool) -> Iterator[Laid]:
    """The environment as it would be with these wheels installed, one after the other.

    Raises BadInput for what is no wheel, WheelDoesNotFit for one that no installer would take.
    """
    with ExitStack() as opened:
        for path in wheels:
            wheel = opened.enter_context(
                open_wheel(Path(path), environment=below.environment, root=root, below=below.files, deep=deep))
            must_fit(wheel, below.environment, machine)
            claims = ClaimsOver(wheel, below.installed)
            below = Laid(environment=with_wheel(below.environment, wheel, claims), installed=claims, files=wheel.files)
        yield below


def must_fit(wheel: WheelOverlay, environment: Environment, machine: Machine) -> None:
    """Raises WheelDoesNotFit, where Python, platform and glibc of the environment are known; BadInput for its name."""
    from stackfix.platforms import LINUX, PLATFORMS
    from stackfix.resolve.records import Target
    from stackfix.resolve.target import TargetView

    if not wheel.file_tags:
        raise BadInput(f"--wheel {wheel.wheel}", "its name is no wheel's, and installers refuse it",
                       "give it the name that it was built with: NAME-VERSION-PYTHON-ABI-PLATFORM.whl")
    python, glibc = environment.python, machine.glibc.version if machine.glibc else None
    if python is None or glibc is None or python.free_threaded or python.implementation != "cpython":
        return
    by_machine = {PLATFORMS[platform].machine: platform for platform in LINUX}
    platform = python.platform or by_machine.get(machine.architecture or "")
    if platform not in LINUX:
        return
    target = TargetView(Target(python=python.minor, platform=platform, glibc=glibc))
    has = f"CPython {python.version or python.minor} on {platform} with glibc {glibc}"
    if target.rank(Path(wheel.wheel).name) is None:
        raise WheelDoesNotFit(wheel=wheel.wheel, is_for=", ".join(wheel.file_tags), has=has)
    requires = wheel.distribution.requires_python
    if not target.takes_python(requires):
        raise WheelDoesNotFit(wheel=wheel.wheel, is_for=f"Python {requires}", has=has)
