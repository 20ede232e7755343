"""A venv whose Python is gone: it has no interpreter of its own, only links to one that may be removed or moved."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from stackfix.diagnose.finding_records import Culprit, Finding
from stackfix.diagnose.make_finding import make_finding
from stackfix.diagnose.situation import View
from stackfix.inspect.environment_records import Python, Venv


def find_lost_python(view: View) -> Iterator[Finding]:
    """SF801 for a venv in which nothing can be started. Of a tree its Python may have been left out."""
    python, venv = view.environment.python, view.environment.venv
    if python is None or venv is None or python.lost is None:
        return
    if not view.machine.live and python.executable is None:
        return
    path = python.executable or f"{view.environment.prefix}/bin/python"
    yield make_finding(
        "SF801", "error" if view.machine.live else "warning", level="environment",
        summary=f"{path} {python.lost}: nothing in the environment can be started",
        why="A venv has no interpreter of its own. That from which it was made was removed, replaced by another "
            "version, or moved.",
        culprit=Culprit(path=path),
        evidence=(f"{venv.config}: home = {venv.home}",) if venv.home else (),
        cure=cure(view, python, venv),
        why_not="which Python of this machine is meant to take its place is not known",
    )


def cure(view: View, python: Python, venv: Venv) -> tuple[str, ...]:
    """Commands: what is installed in the venv stays."""
    prefix = shlex.quote(view.environment.prefix)
    wider = " --system-site-packages" if venv.system_site_packages else ""
    if (venv.made_by or "").startswith("uv "):
        again = f"uv venv --allow-existing{wider} --python {python.minor} {prefix}"
    else:       # venv --upgrade leaves links that are there as they are, broken ones too
        again = f"rm -f {prefix}/bin/python* && python{python.minor} -m venv --upgrade --without-pip{wider} {prefix}"
    back = f"or put Python {python.version or python.minor} back into {venv.home}" if venv.home else None
    return (again, *((back,) if back else ()))
