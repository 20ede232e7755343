"""SF501 in words: for which torch an extension was built, by what it states and by what its symbols show."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stackfix.diagnose.abi_groups import Extension
from stackfix.diagnose.abi_names import readable
from stackfix.diagnose.abi_range import Told, minor_of
from stackfix.diagnose.abi_stated import Stated, disagrees
from stackfix.diagnose.abi_told import bound_lines, patch_lines, string_lines, verdict_text
from stackfix.diagnose.installed_torch import InstalledTorch
from stackfix.diagnose.releases import admits

FLAGS = {"new": "_GLIBCXX_USE_CXX11_ABI=1", "old": "_GLIBCXX_USE_CXX11_ABI=0"}
SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One extension that does not fit the installed torch."""

    extension: Extension
    torch: InstalledTorch
    told: Told | None               # by the almanac
    stated: tuple[Stated, ...]
    flavour: str | None             # its std::string, where torch has the other one: "old", "new", "both"
    torchs: str | None              # torch's

    @property
    def against(self) -> tuple[Stated, ...]:
        """Statements that name another torch, without those that the symbols disprove."""
        return tuple(each for each in self.stated if disagrees(each, self.torch.release) and not self.disproved(each))

    @property
    def excluded(self) -> bool:
        """Whether the symbols rule the installed release out, whatever its build."""
        return self.told is not None and not self.told.has(self.torch)

    @property
    def is_of_patch(self) -> bool:
        """Whether the installed patch lacks what the newest of its minor has."""
        return self.told is not None and any(patch_lines(self.told, self.torch))

    @property
    def wants_another_torch(self) -> bool:
        """Whether another release of torch would help: not where the index's own build of this one has all names."""
        return self.told is None or self.excluded or self.flavour is not None or self.is_of_patch

    def disproved(self, statement: Stated) -> bool:
        """Whether no release that the symbols allow is one that is stated."""
        told = self.told
        return told is not None and bool(told.known_to_load) and not any(
            admits(statement.torch, each) for each in told.known_to_load)

    def summary(self) -> str:
        """What, in one sentence."""
        label, torch = self.extension.label, self.torch
        if self.against:
            return f"{label} was built for another torch than {torch.version}: {self.against[0].text}"
        if self.told is not None and self.excluded:
            return f"{label} was built for another torch than {torch.version}: {verdict_text(self.told, torch)}"
        if self.flavour is not None:
            return f"{label} was built with another std::string ABI than {torch.name}"
        return f"{label} was built for another torch than {torch.version}"

    def why(self) -> str:
        """How it comes."""
        lost = list(dict.fromkeys(readable(name) for name in self.extension.torch_symbols))
        names = ", ".join(lost[:SHOWN]) + (f" and {len(lost) - SHOWN} more" if len(lost) > SHOWN else "")
        libraries = ", ".join(self.extension.missing)
        what = f"It needs {names} in a form that torch {self.torch.version} does not have" if lost else \
            f"It is linked against {libraries}, which torch {self.torch.version} does not have"
        return f"{what}{self.behind()}{self.strings()}"

    def behind(self) -> str:
        """What the names mean."""
        told, minor = self.told, minor_of(self.torch)
        if self.against:
            return ": C++ names carry the types of their arguments, which change from release to release."
        if told is not None and not self.excluded:
            if self.is_of_patch:
                return f". Later patches of torch {minor} have it."
            return "." if self.flavour else (
                f". The package index's torch {minor} has all of its symbols: the torch that is installed is another "
                "build, or its files are not those of its release.")
        if self.stated:
            return ". What it states of its torch would fit: only the symbols tell that it does not."
        return ". Nothing states which torch it was built for: only the symbols tell that it is another."

    def strings(self) -> str:
        """The other axis."""
        if self.flavour not in FLAGS:
            return ""
        return (f" It was compiled with the {self.flavour} std::string ({FLAGS[self.flavour]}), torch with the "
                f"{self.torchs} one.")

    def evidence(self) -> Iterator[str]:
        """What the almanac tells, and where that is not what is stated."""
        told = self.told
        if told is None:
            return
        yield verdict_text(told, self.torch)
        yield from bound_lines(told, self.torch)
        yield from string_lines(told)
        yield from patch_lines(told, self.torch)
        for each in self.stated:
            if self.excluded and not disagrees(each, self.torch.release):
                yield f"{each.source} admits torch {minor_of(self.torch)}, its symbols {self.need(told)}"
            elif self.disproved(each):
                yield f"{each.source} is disproved: {each.text}, and its symbols {self.need(told)}"

    def need(self, told: Told) -> str:
        """What the symbols ask for, behind "its symbols"."""
        found = told.range
        if found.minors or found.patches:
            return f"need {', '.join(filter(None, (told.span(found.minors), *found.patches)))}"
        return "are those of no release that was read"
