"""The environment that an error is held against: inspected as `stackfix check` does, whatever fails of it."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from stackfix.errors import BadInput, StackfixError

if TYPE_CHECKING:
    from stackfix.diagnose.finding_records import Finding
    from stackfix.diagnose.records import FoundVia
    from stackfix.diagnose.situation import View
    from stackfix.explain.here_records import FoundLibrary, Inspected
    from stackfix.explain.records import Explanation, Rule

ACTIVE = ("VIRTUAL_ENV", "CONDA_PREFIX")


def is_wanted(options: Mapping[str, Any]) -> bool:
    """Whether there is an environment to look at: one is named, or one is active."""
    if options["no_inspect"]:
        return False
    return is_named(options) or any(os.environ.get(name) for name in ACTIVE)


def is_named(options: Mapping[str, Any]) -> bool:
    """Whether the command line says where to look."""
    return any(options[name] for name in ("prefix", "python", "root", "variables"))


def inspect(options: Mapping[str, Any], explanation: Explanation, rules: Mapping[str, Rule],
            *, waiting: bool) -> Inspected:
    """The environment of the options, and what is true in it of each message. What fails there is told, not raised.

    Raises BadInput where the command line itself names no environment or variable.

    `waiting`: it is said on stderr where the machine takes long to answer.
    """
    from stackfix.cli.check import rare_collections, tell_of_waiting
    from stackfix.cli.inspecting import asked_for, open_view
    from stackfix.diagnose.diagnose import diagnose
    from stackfix.explain.here import findings_named, here_of
    from stackfix.explain.here_records import Inspected

    try:
        asked = asked_for({**options, "extensions": (), "wheels": (), "deep": False})
        with rare_collections(), open_view(asked, None, tell_of_waiting if waiting else None) as view:
            place = ViewedPlace(view, diagnose(view).findings)
            command = command_of(view, options)
            python = view.environment.python
            return Inspected(
                prefix=view.environment.prefix, found_via=view.environment.found_via, root=options["root"],
                python=(python.version or python.minor) if python else None,
                heres=tuple(here_of(each, rules[each.rule], place, command) for each in explanation.messages),
                findings=() if explanation.messages else findings_named(explanation.fields, place.findings))
    except (StackfixError, OSError, RecursionError) as error:
        if isinstance(error, BadInput) and is_named(options):
            raise
        return Inspected(prefix=options["prefix"], root=options["root"],
                         error=error.what() if isinstance(error, StackfixError) else str(error))


def command_of(view: View, options: Mapping[str, Any]) -> str:
    """The repair of this environment that changes nothing; of a tree, its check."""
    import shlex

    from stackfix.cli.command_shown import command_for

    variables = [word for each in options["variables"] for word in ("--env", each)]
    if options["root"] is None:
        return command_for(view.environment.prefix, "repair", "--dry-run", *variables)
    place = ["--prefix", view.environment.prefix]
    return shlex.join(["stackfix", "check", "--root", options["root"], *place, *variables])


class ViewedPlace:
    """Fills explain.here_records.Place from a view."""

    def __init__(self, view: View, findings: tuple[Finding, ...]) -> None:
        self._view, self.findings = view, findings

    @property
    def prefix(self) -> str:
        return self._view.environment.prefix

    @cached_property
    def driver(self) -> str | None:
        driver = self._view.machine.driver
        if driver.kernel_module is not None:
            return driver.kernel_module.version
        return next((each.version for each in driver.libraries if each.origin in {"system", "wsl"}), None)

    @cached_property
    def gpus(self) -> tuple[str, ...]:
        return tuple(f"{each.name or 'a GPU'}" + (f" ({each.capability})" if each.capability else "")
                     for each in self._view.machine.driver.gpus)

    def version(self, package: str) -> str | None:
        found = self._view.distributions.get(package)
        if found is not None:
            return found.version
        conda = self._view.environment.conda
        return next((each.version for each in conda.packages if each.name == package), None) if conda else None

    def library(self, soname: str, symbol: str | None) -> FoundLibrary | None:
        view = self._view
        state = view.openings[-1].outcome.attempted if view.openings else view.start
        loaded = state.find(soname)
        if loaded is not None:
            return self._found(loaded.path, loaded.real_path, via_of(loaded.found_via), symbol)
        candidate = next(iter(view.candidates(soname, None, state)), None)
        if candidate is not None:
            return self._found(candidate.path, candidate.real_path, via_of(candidate.found_via), symbol)
        lying = next((each.path for each in view.environment.shared_objects
                      if each.path.rpartition("/")[2] == soname), None)
        return None if lying is None else self._found(lying, lying, None, symbol)

    def other(self, soname: str) -> str | None:
        from stackfix.diagnose.provenance import named, owner_of

        stem = f"{soname.partition('.so')[0]}.so"
        for each in self._view.environment.shared_objects:
            name = each.path.rpartition("/")[2]
            if name != soname and (name == stem or name.startswith(f"{stem}.")):
                owner = named(owner_of(self._view, each.path))
                return f"{name} of {owner}" if owner else each.path
        return None

    def _found(self, path: str, real_path: str, via: str | None, symbol: str | None) -> FoundLibrary:
        from stackfix.diagnose.provenance import named, owner_of
        from stackfix.explain.here_records import FoundLibrary

        owner = owner_of(self._view, path, real_path)
        return FoundLibrary(path=posixpath.normpath(path), via=via, package=named(owner),
                            has=self._has(path, symbol) if symbol else None)

    def _has(self, path: str, symbol: str) -> bool | None:
        from stackfix.inspect.records import BadElf, FileAt, SymbolNames, UnreadableElf

        file = self._view.files.at(path)
        if not isinstance(file, FileAt) or isinstance(file.elf, UnreadableElf):
            return None
        try:
            return symbol in self._view.files.symbols(file).offered(SymbolNames((symbol,)))
        except BadElf:
            return None


def via_of(found: FoundVia) -> str:
    """`LD_LIBRARY_PATH (/opt/cuda/lib64)`."""
    return f"{found.step} ({posixpath.normpath(found.element)})" if found.element else found.step
