"""conda, started to bring a package's archive and to link it into a folder of ours: never in the environment itself."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from stackfix.apply.wheels import BOUND
from stackfix.errors import Unreachable
from stackfix.plan.records import InstallConda
from stackfix.sync.errors import InstallFailed

# What a user's settings say of other environments, and of this machine, is left out
OWN = {"CONDA_REGISTER_ENVS": "false", "CONDA_SHORTCUTS": "false", "CONDA_ALWAYS_YES": "true",
       "CONDA_REPORT_ERRORS": "false", "CONDA_NOTIFY_OUTDATED_CONDA": "false", "CONDA_NUMBER_CHANNEL_NOTICES": "0",
       "CONDA_ALLOW_SOFTLINKS": "false", "CONDA_ALWAYS_SOFTLINK": "false",      # they would lead into the cache
       "CONDA_SAFETY_CHECKS": "enabled", "CONDA_EXTRA_SAFETY_CHECKS": "true",   # of what the cache has unpacked
       "PYTHONDONTWRITEBYTECODE": "1"}


# Variables of a process that is repaired: conda's own Python is to be spared them
HOSTILE = ("LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONHOME", "PYTHONPATH")


def conda_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that conda is started with."""
    return {**{name: value for name, value in environ.items() if name not in HOSTILE}, **OWN}


@dataclass(frozen=True, slots=True, kw_only=True)
class CondaLinker:
    """`conda create` of one archive, as if it were for `prefix`: that is what is written into its files."""

    prefix: str
    environ: Mapping[str, str]

    def __call__(self, step: InstallConda, into: Path, /, *, offline: bool = True) -> None:
        """Raises InstallFailed, or Unreachable where conda cannot be started.

        offline: the archive is in conda's cache, where an earlier call has put it
        """
        words = (*step.program, "create", "--yes", "--quiet", "--prefix", str(into), "--no-default-packages",
                 *(("--offline",) if offline else ()), f"{step.url}#sha256:{step.sha256}")
        environment = {**conda_environ(self.environ), "CONDA_TARGET_PREFIX_OVERRIDE": self.prefix}
        status, talk = run_bound(words, environment)
        if status != 0:
            said = [each.strip() for each in talk.decode("utf-8", "replace").splitlines() if each.strip()]
            raise InstallFailed(step.file, f"conda does not link it: {(said or [f'status {status}'])[-1][:300]}",
                                "nothing was changed")


def run_bound(words: tuple[str, ...], environment: Mapping[str, str]) -> tuple[int, bytes]:
    """(exit status, what it said) of a program that ends with us, and with all that it has started."""
    ours, its = os.pipe()
    try:
        with subprocess.Popen([sys.executable, "-I", "-S", "-c", BOUND, str(ours), *words], env=dict(environment),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              pass_fds=(ours,), start_new_session=True) as child:
            try:
                talk = child.communicate()[0]
                return child.returncode, talk
            finally:
                os.close(its)
                its = -1
    except OSError as error:
        raise Unreachable(words[0], f"cannot be started: {error.strerror}") from error
    finally:
        os.close(ours)
        if its >= 0:
            os.close(its)
