"""A repair proven: the simulation made anew, a real load in a child, and with a GPU real kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from stackfix.cli.inspecting import Asked, open_view
from stackfix.cli.repair_activate import activate
from stackfix.cli.repair_load import cured_libraries, loaded, touched_modules
from stackfix.cli.repair_planning import Planned, in_shell
from stackfix.diagnose.diagnose import diagnose
from stackfix.diagnose.finding_records import Diagnosis, Finding
from stackfix.diagnose.situation import View
from stackfix.errors import StackfixError
from stackfix.plan.names import in_fixed_order, is_instead, is_serious, key_of, keys
from stackfix.plan.records import Plan
from stackfix.report.repair_records import Verified
from stackfix.verify.probe import probe, whole
from stackfix.verify.records import Probe, ProbeStep

NO_GPU = "kernels: no NVIDIA GPU is seen on this machine"
NO_PYTHON = "load: the environment has no Python"
NO_LOAD = "load: no package that can be imported loads otherwise than before"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fresh:
    """The environment looked at anew. `view`: in an activated shell where the plan has variables."""

    view: View
    findings: tuple[Finding, ...]
    surprises: tuple[Finding, ...]


def verified(found: Planned, *, timeout: float) -> Verified:
    """What is seen of the repaired environment. Nothing is loaded where the simulation is not as foretold."""
    asked = in_shell(found.asked, dict(found.plan.variables))
    fresh = looked_at(found, asked)
    if fresh.surprises:
        return Verified(findings=fresh.findings, surprises=fresh.surprises, load=None, kernel=None,
                        reason="the environment is not what the plan had foretold")
    reasons = list[str]()
    python = fresh.view.environment.python
    executable = python.executable if python is not None else None
    modules = () if executable is None else tuple(dict.fromkeys(touched_modules(found, fresh.view)))
    shell = activate(fresh.view.environment, found.asked.environ, dict(found.plan.variables), timeout) \
        if found.plan.variables else None
    environ = asked.environ if shell is None else shell.environ
    load = kernel = None
    if executable and modules:
        load = attempted("load", lambda: loaded(found, fresh.view, executable, modules, environ, timeout))
    if shell is not None:
        load = whole((shell.step, *(load.steps if load is not None else ())), None)
    if executable and has_gpu(fresh.view):
        kernel = attempted("kernels", lambda: probe(executable, environ, timeout=timeout))
    if load is None:
        reasons.append(NO_LOAD if executable else NO_PYTHON)
    if kernel is None:
        reasons.append(NO_GPU)
    reasons += [f"{name}: {each.reason}" for name, each in (("load", load), ("kernels", kernel))
                if each is not None and each.reason]
    return Verified(findings=fresh.findings, surprises=(), load=load, kernel=kernel, reason="; ".join(reasons),
                    libraries=tuple(cured_libraries(found, load)) if load is not None else ())


def attempted(name: str, call: Callable[[], Probe]) -> Probe:
    """What the call answers; an error of it, such as a Python that cannot be started, is a step that fails."""
    try:
        return call()
    except StackfixError as error:
        return whole((ProbeStep(name=name, verdict="fails", reason="error", detail=error.what(), accuracy=None,
                                seconds=0.0, libraries=()),), None)


def looked_at(found: Planned, asked: Asked) -> Fresh:
    """A new inspection and simulation, compared with what the plan says will be left."""
    with open_view(asked) as view:
        after = diagnose(view)
    surprises = list(unforetold(found.diagnosis, found.plan, after))
    if found.plan.variables:        # an unactivated process must not be worse off than before
        with open_view(found.asked) as plain:
            surprises += new_in(found.diagnosis, found.plan, diagnose(plain))
    return Fresh(view=view, findings=tuple(in_fixed_order(filter(is_serious, after.findings))),
                 surprises=tuple(dict.fromkeys(surprises)))


def unforetold(before: Diagnosis, plan: Plan, after: Diagnosis) -> Iterator[Finding]:
    """Findings that ought to be gone, or are new; a finding that is left may have become less bad."""
    told = {(each.code, each.summary) for each in plan.left}
    left = {key_of(each) for each in before.findings if (each.code, each.summary) in told}
    brought = codes_brought(before, plan)
    for each in in_fixed_order(filter(is_serious, after.findings)):
        if key_of(each) not in left and each.code not in brought:
            yield each


def new_in(before: Diagnosis, plan: Plan, after: Diagnosis) -> Iterator[Finding]:
    """Findings of a process without activation that were not there before."""
    known, brought, there = keys(before), codes_brought(before, plan), keys(after)
    for each in in_fixed_order(filter(is_serious, after.findings)):
        if key_of(each) not in known and each.code not in brought and not is_instead(each, known, there):
            yield each


def codes_brought(before: Diagnosis, plan: Plan) -> frozenset[str]:
    """Codes of findings that the plan says it will make: requirements that an installation does not meet."""
    known = {(each.code, each.summary) for each in before.findings}
    return frozenset(each.code for each in plan.left if (each.code, each.summary) not in known)


def has_gpu(view: View) -> bool:
    """Whether kernels may be tried at all."""
    driver = view.machine.driver
    return bool(driver.gpus or driver.kernel_module is not None)
