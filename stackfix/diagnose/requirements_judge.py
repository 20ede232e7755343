"""Which declared requirements hold in an environment, and which of them are not met."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from stackfix.diagnose.requirements_lines import Line, cut, parse_line, surely_met, surely_void
from stackfix.diagnose.situation import View
from stackfix.inspect.environment_records import Distribution
from stackfix.inspect.machine_records import Undecided
from stackfix.platforms import CHECKED_MACHINES

IMPLEMENTATIONS = {"cpython": "CPython", "pypy": "PyPy"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmet:
    """One requirement that does not hold."""

    by: Distribution                # who requires
    line: Line
    found: Distribution | None      # what is installed of it


class Judge:
    """Requirements of one environment, for its own Python and platform."""

    def __init__(self, view: View) -> None:
        self.view, self.distributions = view, view.distributions

    def unmet(self) -> Iterator[Unmet | Undecided]:
        """All that is not met, in the order of the installed packages."""
        for by in self.distributions.values():
            for line in self.lines(by):
                found = self.distributions.get(line.name)
                if found is not None and surely_met(line.specifier, found.version):
                    continue
                if not self.applies(line, by):
                    continue
                answer = self.is_met(line.specifier, found.version) if found else False
                if answer is None and found is not None:
                    version = cut(found.version)
                    reason = f"{cut(line.text)!r} or the version {version!r} of {found.name} is not as PEP 440 has it"
                    yield Undecided(subject=f"requirements of {by.name} {by.version}", reason=reason)
                elif not answer:
                    yield Unmet(by=by, line=line, found=found)

    def lines(self, by: Distribution) -> Iterator[Line]:
        """Requirements of one package that may hold here."""
        for text in by.requires:
            line = parse_line(text)
            if line is not None and not surely_void(line.marker, self.environment, self.asked(by)):
                yield line

    def applies(self, line: Line, by: Distribution) -> bool:
        """Whether the marker of a requirement holds, with one of the extras that somebody requires or with none."""
        if not line.marker:
            return True
        from packaging.markers import Marker, UndefinedComparison, UndefinedEnvironmentName

        try:
            marker = Marker(line.marker)
            return any(marker.evaluate({**self.environment, "extra": extra})
                       for extra in ("", *self.asked(by)))
        except (ValueError, UndefinedComparison, UndefinedEnvironmentName):
            return False        # nobody can tell; installers refuse such metadata

    def is_met(self, specifier: str, version: str) -> bool | None:
        """Whether a version is in a range; None where one of them is malformed."""
        from packaging.specifiers import SpecifierSet
        from packaging.version import Version

        try:
            return SpecifierSet(specifier).contains(Version(version), prereleases=True)
        except ValueError:      # InvalidSpecifier, InvalidVersion, or a number that int() refuses
            return None

    def asked(self, by: Distribution) -> frozenset[str]:
        """Extras of a package that others require."""
        return self.extras.get(by.name, frozenset())

    @cached_property
    def extras(self) -> Mapping[str, frozenset[str]]:
        """Extras of installed packages that others require; what the user asked for is written nowhere."""
        found = defaultdict[str, set[str]](set)
        requests = [(by, line) for by in self.distributions.values() for text in by.requires if "[" in text
                    for line in (parse_line(text),) if line is not None and line.extras]
        self.__dict__["extras"] = {}        # while they are looked for nobody has any
        grown = True
        while grown:
            grown = False
            for by, line in requests:
                new = set(line.extras) - found[line.name] if line.name in self.distributions else set()
                if new and not surely_void(line.marker, self.environment, self.asked(by)) and self.applies(line, by):
                    found[line.name] |= new
                    self.__dict__["extras"] = {name: frozenset(extras) for name, extras in found.items()}
                    grown = True
        return {name: frozenset(extras) for name, extras in found.items()}

    @cached_property
    def environment(self) -> Mapping[str, str]:
        """What markers are evaluated for (PEP 508): the inspected Python, not the one that runs this."""
        python, machine = self.view.environment.python, self.view.situation.loader.machine.machine
        minor = python.minor if python else ""
        full = (python.version if python else None) or f"{minor}.0"
        implementation = python.implementation if python else "cpython"
        return {
            "os_name": "posix", "sys_platform": "linux", "platform_system": "Linux",
            "platform_machine": CHECKED_MACHINES.get((python.platform if python else None) or "", machine),
            "platform_release": self.view.machine.kernel or "", "platform_version": "",
            "python_version": minor, "python_full_version": full,
            "implementation_name": implementation, "implementation_version": full,
            "platform_python_implementation": IMPLEMENTATIONS.get(implementation, implementation),
        }
