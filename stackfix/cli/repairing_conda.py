"""What conda would bring in place of a package of its own, and the programs of this machine that install such."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stackfix.apply.conda_program import conda_environ
from stackfix.diagnose.situation import View
from stackfix.errors import AnswerIsNo, StackfixError, Unreachable
from stackfix.inspect.environment_records import CondaPackage
from stackfix.plan.install_choice import Offers, unreached_by
from stackfix.plan.records import InstallConda
from stackfix.plan.rules_conda import PIXI, Program, WantedConda, exactly

KINDS = ("conda", "mamba", "micromamba")
VARIABLES = ("CONDA_EXE", "MAMBA_EXE")      # what their shell functions start: it need not be on PATH
PATIENCE = 900.0                # seconds for one answer of conda's, which may read a whole channel first
FAR = ("HTTP", "Connection", "Offline", "SSL", "Proxy")      # in names of conda's errors
UNUSABLE = re.compile(r"[\s:#]")
PRINTED = "the command is printed"


def programs_at_hand(environ: Mapping[str, str]) -> tuple[Program, ...]:
    """One of each kind: on PATH, else where its shell function says that it is."""
    found = {kind: kind for kind in KINDS if shutil.which(kind, path=environ.get("PATH", os.defpath)) is not None}
    for variable in VARIABLES:
        path = Path(environ.get(variable, ""))
        if path.is_absolute() and path.name in KINDS and os.access(path, os.X_OK):
            found.setdefault(path.name, str(path))
    return tuple(Program(kind=kind, word=found[kind]) for kind in KINDS if kind in found)


def why_never(prefix: str, *, is_base: bool) -> str | None:
    """Why no package of an environment is changed with conda."""
    if is_base:
        return "conda itself runs in it"
    if PIXI.fullmatch(prefix):
        return "it is of a pixi workspace"
    return "conda makes no folder in a path with a blank, a colon or a hash" if UNUSABLE.search(prefix) else None


class NotByConda(AnswerIsNo):
    """conda cannot change this one package alone."""

    def what(self) -> str:
        return f"{self.args[0]}: {self.args[1]}"


class CondaChoices:
    """Asks conda itself: for a package again its record tells, for another release conda solves and changes nothing."""

    def __init__(self, view: View, environ: Mapping[str, str], *, offline: bool) -> None:
        self._view, self._environ, self._offline = view, environ, offline
        self._known: dict[WantedConda, Offers] = {}

    def offers(self, wanted: WantedConda) -> Offers:
        """The one package, where nothing else would change with it."""
        if wanted not in self._known:
            self._known[wanted] = self._asked(wanted)
        return self._known[wanted]

    def _asked(self, wanted: WantedConda) -> Offers:
        conda, prefix = self._view.environment.conda, self._view.environment.prefix
        program = next((each for each in programs_at_hand(self._environ) if each.kind == "conda"), None)
        package = next((each for each in (conda.packages if conda else ()) if each.name == wanted.package), None)
        if conda is None or package is None:
            return Offers(reason=f"conda has no {wanted.package} here")
        if program is None:
            return Offers(reason=f"conda itself is not at hand, which would link {wanted.package}: {PRINTED}")
        why = why_never(prefix, is_base=conda.base)
        if why is not None:
            return Offers(reason=f"no package of {prefix} is changed here, because {why}: {PRINTED}")
        try:
            step = self._again(package, program) if not wanted.specifier else self._solved(package, wanted, program)
        except StackfixError as error:
            return Offers(reason=f"{error.what()}: {PRINTED}", unreached=unreached_by(error))
        return Offers(sets=((step,),))

    def _again(self, package: CondaPackage, program: Program) -> InstallConda:
        """The same archive: its address and hash are in the record."""
        try:
            stated = json.loads(Path(package.record).read_bytes())
        except (OSError, ValueError) as error:
            raise Unreachable(package.record, "cannot be read") from error
        return step_of(package, stated, program, why="")

    def _solved(self, package: CondaPackage, wanted: WantedConda, program: Program) -> InstallConda:
        """The release that conda takes when all else is to stay. Raises Unreachable."""
        if package.projects:
            raise NotByConda(package.name, "is a package of Python modules: what conda does with those is its own")
        spec, channels = f"{package.name}{wanted.specifier}", ("--channel", package.channel) if package.channel else ()
        prefix = self._view.environment.prefix
        answer = self._say(program, "install", "--dry-run", "--prefix", prefix, "--freeze-installed", *channels,
                           spec)
        actions = answer.get("actions") or {}
        come, go = (list(actions.get(name) or ()) for name in ("LINK", "UNLINK"))
        names = sorted({str(each.get("name")) for each in (*come, *go)})
        if names != [package.name] or len(come) != 1:
            raise NotByConda(spec, f"conda would change {len(names)} packages for it ({', '.join(names[:5])})"
                             if names else "conda would change nothing for it")
        exact = f"{package.name}={come[0]['version']}={come[0]['build_string']}"
        fetched = [each for each in actions.get("FETCH") or () if each.get("name") == package.name]
        if not fetched:
            found = self._say(program, "search", "--override-channels", *channels, exact)
            fetched = [each for each in found.get(package.name) or () if each.get("url")]
        if not fetched:
            raise NotByConda(exact, "conda does not tell where its archive is")
        return step_of(package, fetched[0], program, why=f"as conda chooses it where all else stays ({spec})")

    def _say(self, program: Program, *words: str) -> dict[str, Any]:
        """conda's answer to one command that changes nothing. Raises Unreachable."""
        offline = ("--offline",) if self._offline else ()
        try:
            done = subprocess.run([program.word, words[0], "--json", *words[1:], *offline], capture_output=True,
                                  env=conda_environ(self._environ), check=False, stdin=subprocess.DEVNULL,
                                  timeout=PATIENCE)
            answer = json.loads(done.stdout)
        except subprocess.TimeoutExpired as error:
            raise Unreachable(program.word, f"did not answer within {PATIENCE:g} s") from error
        except (OSError, ValueError) as error:
            raise Unreachable(program.word, "gave no answer that can be read") from error
        if not isinstance(answer, dict) or is_no(answer):       # some solvers crash at exit, with all of it said
            raise fault_of(program, answer if isinstance(answer, dict) else {})
        return answer


def is_no(answer: Mapping[str, Any]) -> bool:
    """Whether an answer of conda's is an error: its status does not tell that a whole answer is one."""
    return answer.get("success") is False or any(name in answer for name in ("error", "exception_name"))


def fault_of(program: Program, answer: Mapping[str, Any]) -> StackfixError:
    """The error that an answer of conda's is: an index out of reach, or a no."""
    said = (str(answer.get("message") or answer.get("error") or "").strip().splitlines() or ["no message"])[0][:200]
    name = str(answer.get("exception_name") or "")
    if any(each in name for each in FAR):
        return Unreachable(program.word, said)
    return NotByConda(program.word, f"says no: {said}")


def step_of(package: CondaPackage, stated: Mapping[str, Any], program: Program, *, why: str) -> InstallConda:
    """The step of an archive as a channel, or a record, states it. Raises Unreachable."""
    url, sha256 = stated.get("url"), stated.get("sha256")
    version, build = stated.get("version"), stated.get("build")
    if not all(isinstance(each, str) and each for each in (url, sha256, version, build)):
        raise NotByConda(exactly(package), "nothing states the sha256 of its archive")
    return InstallConda(
        project=package.name, version=str(version), build=str(build), url=str(url), sha256=str(sha256), why=why,
        program=(program.word,), replaces=(f"{package.name} {package.version}",),
        records=(f"conda-meta/{Path(package.record).name}",))
