"""What of a conda lockfile this machine installs: one environment, every file of it hashed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from stackfix.errors import BadInput
from stackfix.sync.errors import LockDoesNotFit
from stackfix.sync.records import Step
from stackfix.write.records import CondaEnvironment, CondaLockFile, CondaPin, Entry, PipPin


def choose(
    lock: CondaLockFile, platform: str, *, environment: str | None, python: str | None,
) -> CondaEnvironment:
    """The environment for `platform`: the one asked for, else that of the Python that is there, else `default`.

    Raises BadInput where several fit, LockDoesNotFit where none does.
    """
    name = Path(lock.path).name
    if lock.kind == "environment":
        raise BadInput(name, "is an environment.yml, which has no hashes",
                       "lock it (`stackfix lock -r environment.yml`) and sync the conda-lock.yml")
    fitting = [one for one in lock.environments if one.platform == platform]
    if not fitting:
        raise LockDoesNotFit(lock=name, locked_for=names(one.platform for one in lock.environments) or "no platform",
                             environment=platform)
    if environment is not None:
        fitting = [one for one in fitting if one.name == environment]
        if not fitting:
            known = names(one.name for one in lock.environments)
            raise BadInput(f"--environment {environment}", f"{name} has none of that name for {platform}",
                           f"its environments: {known}")
    found = next(iter(narrowed(fitting, python)), None)
    if found is None:
        raise BadInput(name, f"has several environments for {platform}: {names(one.name for one in fitting)}",
                       "name one with --environment")
    if not found.conda:
        raise BadInput(name, f"has no packages of channels for {platform}", "lock again")
    return found


def narrowed(fitting: list[CondaEnvironment], python: str | None) -> list[CondaEnvironment]:
    """The one that is meant; none where that cannot be told."""
    for some in (fitting, [one for one in fitting if python is not None and one.python == python],
                 [one for one in fitting if one.name == "default"]):
        if len(some) == 1:
            return some
    return []


def names(values: Iterable[str]) -> str:
    """`a, b`, each once."""
    return ", ".join(dict.fromkeys(values))


def conda_pins(environment: CondaEnvironment, name: str) -> tuple[CondaPin, ...]:
    """The packages of channels in the main category. Raises BadInput for one without hash or address."""
    pins = tuple(pin for pin in environment.conda if pin.category == "main")
    for pin in pins:
        if pin.sha256 is None and pin.md5 is None:
            raise BadInput(f"{name} line {pin.line}", f"{pin.name} has no hash",
                           "lock again: an unhashed file is never installed")
        if pin.url is None or pin.file_name is None or pin.channel is None:
            raise BadInput(f"{name} line {pin.line}", f"{pin.name} has no address", "lock again")
    return pins


def left_out(environment: CondaEnvironment) -> int:
    """How many packages are of other categories (`dev`), which are not installed."""
    categories = [*(pin.category for pin in environment.conda), *(pin.category for pin in environment.pip)]
    return sum(category != "main" for category in categories)


def pip_step(environment: CondaEnvironment, path: Path) -> tuple[Step, ...]:
    """The pip entries as one step; none without any. Raises BadInput for one without sha256."""
    entries = tuple(pip_entry(pin, path.name) for pin in environment.pip if pin.category == "main")
    return (Step(path=path, entries=entries, build=False, native=False, foreign=True),) if entries else ()


def pip_entry(pin: PipPin, name: str) -> Entry:
    """One pin of pip: by its address where the lock has one."""
    where = f"{name} line {pin.line}"
    if pin.sha256 is None:
        raise BadInput(where, f"{pin.name} has no sha256", "lock again: an unhashed file is never installed")
    if pin.url is None and pin.version is None:
        raise BadInput(where, f"{pin.name} has neither address nor version", "lock again")
    return Entry(name=pin.name, version=None if pin.url else pin.version, url=pin.url, sha256=(pin.sha256,),
                 extras=pin.extras, line=pin.line)
