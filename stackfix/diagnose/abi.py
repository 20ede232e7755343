"""Extensions that were built for another torch, another CUDA, or need what nothing provides."""

from __future__ import annotations

from collections.abc import Iterator

from stackfix.abi.names import string_abi
from stackfix.diagnose.abi_case import Case
from stackfix.diagnose.abi_cures import for_the_extension, for_this_torch, rebuild
from stackfix.diagnose.abi_groups import Extension, asked_of_torch, extensions, verdict
from stackfix.diagnose.abi_offers import instead, string_abi_of_torch, torch_libraries
from stackfix.diagnose.abi_other import cpu_torch, foreign_cuda, no_torch, other_cuda, torch_itself, unknown_symbol
from stackfix.diagnose.abi_range import told_of_torch
from stackfix.diagnose.abi_stated import stated_string_abi, stated_torch
from stackfix.diagnose.abi_text import culprit_of, evidence_of, file_lines, requester_of, seen_error, severity_of
from stackfix.diagnose.finding_records import Finding
from stackfix.diagnose.installed_torch import InstalledTorch, installed_torch
from stackfix.diagnose.make_finding import make_finding
from stackfix.diagnose.situation import View


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
    told, stated = told_of_torch(view, extension), tuple(stated_torch(view, extension.distribution))
    libraries = torch_libraries(extension.first.opening.outcome.attempted)
    torchs = string_abi_of_torch(view, libraries)
    mine = string_abi(asked_of_torch(view, extension)) or stated_string_abi(extension.distribution)
    case = Case(extension=extension, torch=torch, told=told, stated=stated,
                flavour=mine if torchs is not None and mine not in {None, torchs} else None, torchs=torchs)
    better = tuple(for_this_torch(view, extension, torch, torchs))
    back = tuple(for_the_extension(view, extension, stated, told, torch)) if case.wants_another_torch else ()
    return make_finding(
        "SF501", severity_of(view, extension), summary=case.summary(), why=case.why(),
        culprit=culprit_of(view, extension), requester=requester_of(view, extension),
        symbols=tuple(extension.torch_symbols),
        evidence=tuple(dict.fromkeys((
            *evidence_of(extension), *(each.text for each in stated), *case.evidence(),
            *instead(view, libraries, extension.torch_symbols),
            f"installed: {torch.title}" + (f", the {torchs} std::string" if torchs else ""), *file_lines(extension)))),
        error=seen_error(extension), cure=(*(each.line for each in (*better, *back)), *rebuild(view, extension)),
        installs=tuple(each.install for each in (*better, *back)),
        why_not=None if better else f"no build of {extension.name} for {torch.name} is known",
        built_for=told.record() if told else None)
