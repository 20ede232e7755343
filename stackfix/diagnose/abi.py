"""Extensions that were built for another torch, another CUDA, or need what nothing provides."""

from __future__ import annotations

from collections.abc import Iterator

from stackfix.diagnose.abi_cures import for_the_extension, for_this_torch, rebuild
from stackfix.diagnose.abi_groups import Extension, asked_of_torch, extensions, verdict
from stackfix.diagnose.abi_names import hint, string_abi
from stackfix.diagnose.abi_offers import instead, string_abi_of_torch, torch_libraries
from stackfix.diagnose.abi_other import cpu_torch, foreign_cuda, no_torch, other_cuda, torch_itself, unknown_symbol
from stackfix.diagnose.abi_stated import Stated, disagrees, stated_string_abi, stated_torch
from stackfix.diagnose.abi_text import culprit_of, evidence_of, file_lines, requester_of, seen_error, severity_of
from stackfix.diagnose.finding_records import Finding
from stackfix.diagnose.installed_torch import InstalledTorch, installed_torch
from stackfix.diagnose.make_finding import make_finding
from stackfix.diagnose.situation import View

FLAGS = {"new": "_GLIBCXX_USE_CXX11_ABI=1", "old": "_GLIBCXX_USE_CXX11_ABI=0"}
SHOWN = 3


def check_extensions(view: View) -> Iterator[Finding]:
    """SF501 to SF504: one finding for each package."""
    torch = installed_torch(view)
    for extension in extensions(view).values():
        code = verdict(view, extension)
        if code == "SF302":
            yield torch_itself(view, extension)
        elif code == "SF401":
            yield no_torch(view, extension)
        elif code == "SF503":
            yield unknown_symbol(view, extension)
        elif torch is not None and code == "SF502":
            yield cpu_torch(view, extension, torch)
        elif torch is not None and code == "SF504":
            yield other_cuda(view, extension, torch)
        elif torch is not None and code == "SF501":
            yield other_torch(view, extension, torch)
    if torch is not None:
        yield from foreign_cuda(view, torch)


def other_torch(view: View, extension: Extension, torch: InstalledTorch) -> Finding:
    """SF501."""
    asked = tuple(dict.fromkeys(asked_of_torch(view, extension)))
    stated = tuple(stated_torch(view, extension.distribution, asked))
    against = [each for each in stated if disagrees(each, torch.release)]
    libraries = torch_libraries(extension.first.opening.outcome.attempted)
    mine, torchs = string_abi(asked) or stated_string_abi(extension.distribution), string_abi_of_torch(view, libraries)
    flavour = mine is not None and torchs is not None and mine != torchs
    better = tuple(for_this_torch(view, extension, torch))
    back = tuple(for_the_extension(view, extension, stated, torch))
    return make_finding(
        "SF501", severity_of(view, extension), summary=summary_of(extension, torch, against, flavour=flavour),
        why=why_of(extension, torch, stated, against) + (
            f" It was compiled with the {mine} std::string ({FLAGS[mine]}), torch with the {torchs} one."
            if flavour and mine else ""),
        culprit=culprit_of(view, extension), requester=requester_of(view, extension),
        symbols=tuple(extension.torch_symbols),
        evidence=(*evidence_of(extension), *(each.text for each in stated),
                  *instead(view, libraries, extension.torch_symbols),
                  f"installed: {torch.title}" + (f", the {torchs} std::string" if torchs else ""),
                  *file_lines(extension)),
        error=seen_error(extension), cure=(*better, *back, *rebuild(view, extension)),
        why_not=None if better else f"no build of {extension.name} for {torch.name} is known")


def summary_of(extension: Extension, torch: InstalledTorch, against: list[Stated], *, flavour: bool) -> str:
    """What, in one sentence."""
    if against:
        return f"{extension.label} was built for another torch than {torch.version}: {against[0].text}"
    if flavour:
        return f"{extension.label} was built with another std::string ABI than {torch.name}"
    return f"{extension.label} was built for another torch than {torch.version}"


def why_of(extension: Extension, torch: InstalledTorch, stated: tuple[Stated, ...], against: list[Stated]) -> str:
    """How it comes."""
    lost = list(dict.fromkeys(hint(name) for name in extension.torch_symbols))
    names = ", ".join(lost[:SHOWN]) + (f" and {len(lost) - SHOWN} more" if len(lost) > SHOWN else "")
    libraries = ", ".join(extension.missing)
    what = f"It needs {names} in a form that torch {torch.version} does not have" if lost else \
        f"It is linked against {libraries}, which torch {torch.version} does not have"
    if against:
        return f"{what}: C++ names carry the types of their arguments, which change from release to release."
    if stated:
        return f"{what}. What it states of its torch would fit: only the symbols tell that it does not."
    return f"{what}. Nothing states which torch it was built for: only the symbols tell that it is another."
