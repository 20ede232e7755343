"""The commands that install the steps of a lock. Nothing is run here."""

from __future__ import annotations

import os
from collections.abc import Mapping

from stackfix.sync.records import Command, Installer, Interpreter, Step
from stackfix.write.records import Entry

CHECKED = ("--require-hashes", "--no-deps")     # the lock is the whole closure: nothing else is looked for
# Settings that would install something else than the lock, or somewhere else; indexes, certificates and proxies stay
LEFT_OUT = (
    "PIP_BREAK_SYSTEM_PACKAGES", "PIP_CONSTRAINT", "PIP_DRY_RUN", "PIP_PREFIX", "PIP_PYTHON", "PIP_REQUIREMENT",
    "PIP_ROOT", "PIP_TARGET", "PIP_USER", "PIP_NO_BUILD_ISOLATION",
    "UV_BREAK_SYSTEM_PACKAGES", "UV_BUILD_CONSTRAINT", "UV_CONSTRAINT", "UV_EXCLUDE", "UV_EXCLUDE_NEWER",
    "UV_NO_BUILD_ISOLATION", "UV_NO_VERIFY_HASHES", "UV_OVERRIDE", "UV_PYTHON", "UV_SYSTEM_PYTHON", "UV_TORCH_BACKEND",
)


def uv_installer(start: tuple[str, ...], interpreter: Interpreter) -> Installer:
    """The uv that the words `start` start."""
    return Installer(name="uv", words=(*start, "pip", "install"), after=("--python", interpreter.executable))


def pip_installer(own_python: str, interpreter: Interpreter) -> Installer:
    """The environment's pip, else the one beside us, told to work on the environment."""
    words = ((interpreter.executable, "-m", "pip") if interpreter.has_pip
             else (own_python, "-m", "pip", "--python", interpreter.executable))
    return Installer(name="pip", words=(*words, "install"), after=("--no-input", "--disable-pip-version-check"))


def plan_commands(
    steps: tuple[Step, ...], installer: Installer, *, environ: Mapping[str, str], replaced: Mapping[str, str],
    quiet: bool = False,
) -> tuple[Command, ...]:
    """One command a step. `replaced`: project -> address to take its file from, in place of the lock's."""
    options = ("--quiet",) if quiet else ()
    return tuple(
        Command(
            words=(*installer.words, *CHECKED, *(("--no-build-isolation",) if step.build else ()), *options,
                   *installer.after),
            file=step.path,
            text=text_of(step, installer, replaced),
            environment=installer_environment(environ),
        )
        for step in steps
    )


def text_of(step: Step, installer: Installer, replaced: Mapping[str, str]) -> str | None:
    """The step as requirements, where its own file cannot be given to the installer."""
    if replaced.keys() & {entry.name for entry in step.entries} or step.foreign or (
            installer.name == "pip" and not step.native):
        return "".join(requirement_line(entry, replaced.get(entry.name, entry.url)) for entry in step.entries)
    return None


def requirement_line(entry: Entry, url: str | None) -> str:
    """One pin with its hashes on one line."""
    extras = f"[{','.join(entry.extras)}]" if entry.extras else ""
    address = url.replace("$", "%24") if url else None      # pip and uv fill in `${NAME}`
    pin = f"{entry.name}{extras} @ {address}" if address else f"{entry.name}{extras}=={entry.version}"
    marker = f" ; {entry.marker}" if entry.marker else ""
    return f"{pin}{marker} {' '.join(f'--hash=sha256:{digest}' for digest in entry.sha256)}\n"


def installer_environment(environ: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The variables of the installer. A constraints file of pip's configuration is put out by an empty one."""
    kept = {name: value for name, value in environ.items() if name not in LEFT_OUT}
    return tuple(sorted({**kept, "PIP_CONSTRAINT": os.devnull}.items()))
