"""Errors outside of a GPU stack are said to be unknown: as they stand, mutated, and beside words of the stack."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stackfix.cli.explain_facts import MatrixFacts
from stackfix.explain.derive import DERIVE
from stackfix.explain.explain import explain
from stackfix.explain.records import Explanation, Rule
from stackfix.explain.rules import read_rules
from stackfix.explain.text import read_text
from tests.unrelated_errors import UNRELATED

RULES = read_rules()
FACTS = MatrixFacts(None)
ROOT = Path(__file__).resolve().parent.parent
STACK_WORDS = ("torch", "CUDA", "cuda", "nvidia", "flash_attn", "libcudnn", "GPU", "driver", "12.1", "+cu121", "cuDNN",
               "torch==2.3.1", "site-packages/torch/", "/usr/local/cuda-12.1/lib64", "LD_LIBRARY_PATH", "sm_90")
TRAINING_LOG = """
INFO torch 2.3.1+cu121, flash_attn 2.5.8, CUDA 12.1, driver 550.54, NVIDIA A100-SXM4-80GB
/env/lib/python3.11/site-packages/torch/utils/data/dataloader.py:557: UserWarning: This DataLoader will create 8 workers
[1/10] loss 3.21
"""


def explained(text: str) -> Explanation:
    return explain(read_text(text.encode()), RULES, FACTS, DERIVE)


def claims(text: str) -> list[str]:
    return [message.rule for message in explained(text).messages]


def chance(seed: str) -> random.Random:
    return random.Random(seed)      # noqa: S311 - nothing secret


def test_there_are_errors_of_many_kinds() -> None:
    assert len(UNRELATED) >= 40


@pytest.mark.parametrize("name", UNRELATED)
def test_an_unrelated_error_is_unknown(name: str) -> None:
    explanation = explained(UNRELATED[name])
    assert (explanation.kind, [cause.summary for cause in explanation.causes]) == ("unknown", [])


@pytest.mark.parametrize("name", UNRELATED)
def test_an_unrelated_error_stays_unknown_at_the_end_of_a_training_log(name: str) -> None:
    assert claims(TRAINING_LOG + UNRELATED[name]) == []


@pytest.mark.parametrize("name", UNRELATED)
def test_a_mutated_unrelated_error_is_unknown(name: str) -> None:
    assert [text for text in mutations(UNRELATED[name], chance(name)) if claims(text)] == []


def mutations(text: str, draw: random.Random) -> Iterator[str]:
    """The text with its words in another order, cut short, and with words of the stack put in."""
    words = text.split()
    for _ in range(3):
        yield " ".join(draw.sample(words, len(words)))
        yield text[draw.randrange(len(text)):]
        yield text[:draw.randrange(len(text)) + 1]
        mixed = list(words)
        for word in draw.sample(STACK_WORDS, 4):
            mixed.insert(draw.randrange(len(mixed) + 1), word)
        yield " ".join(mixed)


def test_all_of_them_in_one_log_are_unknown() -> None:
    assert claims("\n".join(UNRELATED.values())) == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_text_of_the_same_shape_that_says_something_else_is_unknown(rule: Rule) -> None:
    draw = chance(rule.name)
    texts = [re.sub(r"[A-Za-z]{3,}", lambda word: "".join(draw.sample(word[0], len(word[0]))), each.text)
             for each in rule.examples]
    assert [text for text in texts if claims(text)] == []


def run(text: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, "-m", "stackfix", "explain", "--no-inspect", *options)
    return subprocess.run(command, input=text, text=True, capture_output=True, check=False, timeout=60,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})


@pytest.mark.parametrize("name", ["numpy-dtype-size", "tls-certificate", "cuda-out-of-memory", "symbol-icu"])
def test_the_command_says_so_with_status_1(name: str) -> None:
    done = run(UNRELATED[name])
    assert (done.returncode, done.stderr) == (1, "")
    assert "unknown" in done.stdout


def test_the_document_of_an_unknown_error_has_no_causes_and_what_was_read() -> None:
    done = run(TRAINING_LOG + UNRELATED["numpy-dtype-size"], "--json")
    document = json.loads(done.stdout)
    assert (done.returncode, document["kind"], document["causes"]) == (1, "unknown", [])
    assert (document["read"]["torch"], document["read"]["python"]) == ("2.3.1", "3.11")
