"""Each lock that an explanation proposes can be asked for as it stands, and the matrix has a stack for it."""

from __future__ import annotations

import re
import shlex

import click
import pytest

from stackfix.cli.explain_facts import MatrixFacts
from stackfix.cli.lock import command
from stackfix.cli.options import LockOptions
from stackfix.cli.request import read_request
from stackfix.errors import StackfixError
from stackfix.explain.derive import DERIVE
from stackfix.explain.explain import explain
from stackfix.explain.rules import read_rules
from stackfix.explain.text import read_text
from stackfix.matrix.load import load_matrix
from stackfix.resolve.why import why
from stackfix.resolve.why_pairs import COMPANIONS
from stackfix.write.files import check_formats
from tests.explain_cases import CASES

FACTS = MatrixFacts(None)
RULES = read_rules()
IN_PROSE = re.compile(r"stackfix lock(?: --[a-z-]+ (?:'[^']*'|[\w.+=\[\]-]*\w))+")
STANDS_FOR = re.compile(r"VERSION|sm_XX|X\.Y")     # what the reader is to put in
COMMON = ("as_json", "quiet", "verbose", "color", "offline", "cache_dir")


def proposed() -> dict[str, str]:
    """Command -> the text that it is for: of every example of every rule, and of every public report.

    Those that a cure names in its sentences, too.
    """
    texts = [example.text for rule in RULES for example in rule.examples]
    texts += [case.text.format_map(case.values) for case in CASES]
    found: dict[str, str] = {}
    for text in texts:
        for cause in explain(read_text(text.encode()), RULES, FACTS, DERIVE).causes:
            told = [cause.avoid] if cause.avoid else []
            told += [each for each in IN_PROSE.findall(cause.cure) if not STANDS_FOR.search(each)]
            found.update((each, text) for each in told if each not in found)
    return found


def options_of(line: str) -> LockOptions:
    """The options, as the command reads them. Raises what the command raises."""
    program, name, *words = shlex.split(line)
    assert (program, name) == ("stackfix", "lock")
    context = command.make_context("lock", words)
    return LockOptions(**{key: value for key, value in context.params.items() if key not in COMMON})


def pairs_of(options: LockOptions) -> dict[str, str]:
    """What is asked of torch and of what belongs to it, as `matrix why` takes it."""
    pairs = {"torch": options.torch, "cuda": options.cuda, "driver": options.driver, "flash-attn": options.flash_attn,
             "python": next(iter(options.pythons), None), "gpu-arch": next(iter(options.gpu_archs), None),
             "platform": next(iter(options.platforms), None)}
    for requirement in options.with_:
        if (found := re.fullmatch(r"([\w-]+)==([\w.]+)", requirement)) and found[1] in COMPANIONS:
            pairs[found[1]] = found[2]
    return {name: value for name, value in pairs.items() if value}


def fault_of(line: str) -> str | None:
    """Why a lock cannot be asked for, or could not be made; None where it can."""
    try:
        there = line.replace("--gpu-arch auto", "--gpu-arch sm_90").replace("--driver auto", "--driver 580.65.06")
        options = options_of(there)         # here there need be none
        read_request(options, kept=())
        check_formats(options.formats)
        verdict = why(load_matrix(), pairs_of(options))
    except (click.ClickException, StackfixError) as error:
        return str(error)
    against = [point.text for point in verdict.points if point.holds is False]
    return "; ".join(against) or (None if verdict.build else "no build of torch")


def test_every_lock_that_is_proposed_can_be_asked_for() -> None:
    lines = proposed()
    assert len(lines) > len(RULES) / 4
    assert {line: fault for line in lines if (fault := fault_of(line))} == {}


@pytest.mark.parametrize(("line", "fault"), [
    ("stackfix lock --no-such", "No such option"), ("stackfix lock --torch", "requires an argument"),
    ("stackfix lock --driver VERSION", "VERSION"), ("stackfix lock --gpu-arch sm_XX", "sm_XX"),
    ("stackfix lock --torch 2.3.1 --cuda 13.0", "for CUDA 12.1"), ("stackfix lock --torch 2.9.9", "no build"),
    ("stackfix lock --torch 2.4.0 --cuda 12.1 --with 'torchvision==0.20.1'", "torch==2.5.1"),
    ("stackfix lock --torch 2.8.0 --cuda 12.8 --gpu-arch sm_61", "sm_70"), ("stackfix lock --format none", "none"),
])
def test_what_cannot_be_asked_for_is_seen(line: str, fault: str) -> None:
    assert fault in (fault_of(line) or "")
