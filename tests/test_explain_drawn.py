"""Messages of builds, resolvers and installers with drawn versions, folders and tools: what is told follows them."""

from __future__ import annotations

import random
import re
import secrets
from collections.abc import Iterator
from typing import Any

import pytest
from packaging.specifiers import SpecifierSet

from stackfix.cli.explain_facts import MatrixFacts
from stackfix.explain.derive import DERIVE
from stackfix.explain.explain import explain
from stackfix.explain.records import Cause
from stackfix.explain.rules import read_rules
from stackfix.explain.text import read_text
from tests import explain_oracle as oracle

RULES = read_rules()
FACTS = MatrixFacts(None)
DRAWS = 15
CUDNN = "nvidia-cudnn-cu12"


@pytest.fixture
def chance() -> random.Random:
    seed = secrets.randbits(32)
    print(f"seed {seed}")       # noqa: T201 - shown where the test fails
    return random.Random(seed)      # noqa: S311 - no secret


def first(text: str, rule: str) -> Cause:
    """The first cause of a text whose first message is one of this rule."""
    explanation = explain(read_text(text.encode()), RULES, FACTS, DERIVE)
    assert [message.rule for message in explanation.messages][:1] == [rule], text
    return explanation.causes[0]


def told(cause: Cause) -> str:
    return "\n".join(filter(None, (cause.summary, *cause.because, cause.culprit, cause.cure, cause.avoid)))


def builds(torch: str) -> list[dict[str, Any]]:
    """Rows of a release's builds for Linux x86-64."""
    return [each for each in oracle.torch_rows()[torch]["builds"] if each["platform"] == "linux-64"]


def cudas() -> list[str]:
    every = {each["cuda"] for torch in oracle.torch_rows() for each in builds(torch)}
    return sorted(every - {"cpu"}, key=oracle.number)


def cudnn_pins() -> Iterator[tuple[str, str]]:
    """Releases of torch whose build of the default index pins a cuDNN of CUDA 12, and the pin."""
    for torch in oracle.torch_rows():
        default = (each for each in builds(torch) if each.get("index", "default") == "default")
        own = next((each for each in default if "pins" in each), None)
        for line in oracle.toml("torch.toml")["pins"][own["pins"]]["lines"] if own else ():
            if match := re.match(rf"{CUDNN}==([\d.]+)", line):
                yield torch, match[1]


def test_nvcc_of_another_cuda(chance: random.Random) -> None:
    for _ in range(DRAWS):
        nvcc, torch = chance.sample(cudas(), 2)
        breaks = chance.choice([" ", "\n", "\n      "])
        cause = first(f"RuntimeError:\nThe detected CUDA version ({nvcc}) mismatches the version that was used to"
                      f" compile{breaks}PyTorch ({torch}). Please make sure to use the same.", "build-other-cuda")
        assert cause.culprit == f"nvcc {nvcc}"
        assert f"/usr/local/cuda-{torch}/bin" in cause.cure
        assert cause.avoid is not None
        assert cause.avoid.endswith(f"--cuda {nvcc}")
        named = re.search(r"--torch (\S+)", cause.avoid)
        assert named is not None
        assert nvcc in {each["cuda"] for each in builds(named[1])}


def test_architectures(chance: random.Random) -> None:
    rows = [each for torch in oracle.torch_rows() for each in builds(torch)]
    every = {code: {each["cuda"] for each in rows if code in each.get("archs", "").replace("+PTX", "").split()}
             for code in ("37", "50", "70", "90", "100", "120")}
    for code in chance.sample(sorted(every), 4):
        way = chance.choice(["compute", "sm"])
        cause = first(f"nvcc fatal   : Unsupported gpu architecture '{way}_{code}'", "build-nvcc-architecture")
        assert f"sm_{code}" in cause.summary
        assert f"CUDA {min(every[code], key=oracle.number)}" in told(cause)


def test_torch_and_another_want_another_cudnn(chance: random.Random) -> None:
    pins = dict(cudnn_pins())
    for _ in range(DRAWS):
        torch = chance.choice(sorted(pins))
        wanted = chance.choice(sorted(set(pins.values()) - {pins[torch]}))
        spec = chance.choice([f"=={wanted}", f">={wanted},<{oracle.number(wanted)[0] + 1}"])
        if pins[torch] in SpecifierSet(spec):
            continue
        pin, other, spaced = f"{CUDNN}=={pins[torch]}", f"{CUDNN}{spec}", spec.replace(",", " and ")
        text = chance.choice([
            f"The conflict is caused by:\n  torch {torch} depends on {pin}\n  other 1 depends on {CUDNN}{spaced}\n\n",
            f"  ╰─▶ Because other==1 depends on\n      {other} and torch=={torch} depends on\n      {pin}, we can",
        ])
        cause = first(text, "conflict-pip" if "caused by" in text else "conflict-uv")
        fitting = sorted((each for each, pin in pins.items() if pin in SpecifierSet(spec)), key=oracle.number)
        later = [each for each in fitting if oracle.number(each) >= oracle.number(torch)]
        near = later[0] if later else fitting[-1]
        assert f"torch {torch} for CUDA" in told(cause)
        assert f"Move torch to {near} (it pins {CUDNN} {pins[near]})" in cause.cure
        assert (cause.avoid or "").startswith(f"stackfix lock --torch {near} --cuda ")


def test_a_library_that_was_moved(chance: random.Random) -> None:
    pins = dict(cudnn_pins())
    for _ in range(DRAWS):
        torch, has = chance.choice(sorted(pins)), chance.choice([*pins.values(), "9.99.0.1"])
        if has == pins[torch]:
            continue
        warning = f"torch {torch} requires {CUDNN}=={pins[torch]}, but you have {CUDNN} {has} which is incompatible."
        cause = first(warning, "pin-not-kept")
        assert cause.culprit == f"{CUDNN} {has}"
        assert f"'{CUDNN}=={pins[torch]}'" in cause.cure
        if has in pins.values():
            assert any(f"to {each}, which pins {has}" in cause.cure for each, pin in pins.items() if pin == has)


def test_variants_of_torch(chance: random.Random) -> None:
    for _ in range(DRAWS):
        torch, cuda = chance.choice(sorted(oracle.torch_rows())), chance.choice(cudas())
        tag = "cu" + cuda.replace(".", "")
        tool = chance.choice(["ERROR: No matching distribution found for torch=={0}+{1}",
                              "Because there is no version of torch=={0}+{1} and you require torch=={0}+{1}, we"])
        cause = first(tool.format(torch, tag), "release-not-found")
        own = [each for each in builds(torch) if each["cuda"] == cuda]
        if not own:
            assert f"not known to have been built for CUDA {cuda}" in cause.summary
        elif own[0].get("index", "default") == "default":
            assert f"called plainly {torch}" in cause.summary
        else:
            assert f"under {own[0]['index']}" in cause.summary
        if own:
            assert (cause.avoid or "").startswith(f"stackfix lock --torch {torch} --cuda {cuda}")
