"""Refusals: the right reason, minimal causes, and offers that really work when run as they are printed."""

from __future__ import annotations

import os
import random
import re
import shlex
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from stackfix.matrix.load import load_matrix
from stackfix.matrix.records import Matrix
from tests.judges.command import Run, stackfix
from tests.replay.releases import ReleaseServer
from tests.replay.server import ReplayServer

pytestmark = pytest.mark.recorded

DRAWS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    """Runs the command against the recorded index, set as a user's settings set it: offers then run as printed."""

    index: str
    releases: str
    cache: Path
    folder: Path

    def lock(self, words: Sequence[str]) -> Run:
        """One run, in an empty folder: no pins of an earlier lock are kept."""
        settings = {"PIP_INDEX_URL": self.index}
        source = () if "--flash-attn-source" in words else ("--flash-attn-source", self.releases)
        return stackfix("lock", *words, "--json", "--format", "requirements", *source,
                        cwd=Path(tempfile.mkdtemp(dir=self.folder)), cache=self.cache, env=settings)


@pytest.fixture(scope="module")
def shop(index: ReplayServer, stackfix_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with ReleaseServer({}, status=503) as releases:      # hashes in the matrix then decide
        yield Shop(index=index.url, releases=releases.url, cache=stackfix_cache,
                   folder=tmp_path_factory.mktemp("refused"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A request that cannot work: the options that clash, and what the reason must say."""

    asked: tuple[tuple[str, str], ...]
    says: str                       # regular expression over the causes that were not asked
    basis: str                      # "matrix" or "index": where the deciding fact stands

    def __str__(self) -> str:
        return " ".join(f"{flag} {value}" for flag, value in self.asked)


REFUSALS = (
    Refusal(asked=(("--torch", "2.3"), ("--cuda", "13.0")), says=r"torch 2\.3\D.*12\.1", basis="matrix"),
    Refusal(asked=(("--flash-attn", "2.6.3"), ("--torch", "2.9")), says=r"flash-attn 2\.6\.3\b.*torch", basis="matrix"),
    Refusal(asked=(("--torch", "2.3"), ("--python", "3.13")), says=r"torch 2\.3\D.*3\.12", basis="matrix"),
    Refusal(asked=(("--driver", "470.82.01"), ("--cuda", "12")), says=r"525\.60\.13", basis="matrix"),
    Refusal(asked=(("--gpu-arch", "sm_120"), ("--torch", "2.5")), says=r"sm_120|sm_90", basis="matrix"),
    Refusal(asked=(("--torch", "2.3.1"), ("--with", "nvidia-nvjitlink-cu12<12.1")), says=r"12_?1|12\.1\.55",
            basis="matrix"),
    Refusal(asked=(("--torch", "2.1.1"), ("--with", "jax[cuda12]==0.4.33")),
            says=r"nvidia-cudnn-cu12.*8\.9\.2\.26(.|\n)*9\.1|9\.1(.|\n)*8\.9\.2\.26", basis="index"),
    Refusal(asked=(("--torch", "2.8"), ("--with", "nvidia-cublas-cu12==12.1.3.1")), says=r"12\.8\.4\.1",
            basis="matrix|index"),
)


def words_of(asked: Sequence[tuple[str, str]]) -> list[str]:
    return [word for pair in asked for word in pair]


def error_of(run: Run) -> dict[str, Any]:
    assert run.status == 1, run
    error: dict[str, Any] = run.json["error"]
    assert error["code"] == "no-consistent-stack", run
    return error


def named(error: dict[str, Any]) -> set[tuple[str, str]]:
    """(flag, value) of the asked causes."""
    return {(cause["asked"]["flag"], cause["asked"]["value"]) for cause in error["causes"] if cause["kind"] == "asked"}


@pytest.mark.parametrize("refusal", REFUSALS, ids=str)
def test_refused_with_the_right_reason_and_offers_that_work(refusal: Refusal, shop: Shop) -> None:
    error = error_of(shop.lock(words_of(refusal.asked)))
    assert named(error) == set(refusal.asked)
    facts = [cause for cause in error["causes"] if cause["kind"] != "asked"]
    assert re.search(refusal.says, "\n".join(cause["text"] for cause in facts)), error
    assert any(re.fullmatch(refusal.basis, cause["kind"]) for cause in facts), error
    assert all(cause["source"] for cause in error["causes"])
    assert 1 <= len(error["nearest"]) <= 3
    for offer in error["nearest"]:
        taken = shop.lock(offered(offer["command"]))
        assert taken.status == 0, (offer, taken)
        stack = taken.json["stack"]
        assert f"torch {stack['torch']}" in offer["gives"]
        assert offer["change"]


def offered(command: str) -> list[str]:
    """The words of an offered command after `stackfix lock`."""
    words = shlex.split(command)
    assert words[:2] == ["stackfix", "lock"], command
    return words[2:]


def test_forward_compatibility_is_taken_with_what_is_not_known(shop: Shop) -> None:
    taken = shop.lock(["--driver", "470.82.01", "--cuda", "12", "--cuda-compat"])
    assert taken.status == 0, taken
    assert any(re.search(r"compat", note) and re.search(r"not known|unknown", note) for note in taken.json["notes"])


# -- conflicts drawn from the matrix ---------------------------------------------------------------------------------

def torch_minors(matrix: Matrix) -> list[str]:
    return sorted({".".join(build.version.split(".")[:2]) for build in matrix.torch if build.index == "default"})


def pythons(matrix: Matrix) -> list[str]:
    return sorted({python for build in matrix.torch for python in build.pythons} - {"3.7"})


def draw(dice: random.Random, matrix: Matrix) -> list[tuple[str, str]]:
    """Options of one random request; many of them cannot work."""
    torch = ("--torch", dice.choice(torch_minors(matrix)))
    python = ("--python", dice.choice(pythons(matrix)))
    cuda = ("--cuda", dice.choice(sorted({build.cuda for build in matrix.torch})))
    flash_attn = ("--flash-attn", dice.choice([release.version for release in matrix.flash_attn]))
    arch = ("--gpu-arch", dice.choice(sorted({arch for build in matrix.torch for arch in build.gpu_archs
                                              if arch.startswith("sm_")})))
    driver = ("--driver", dice.choice(sorted({row.driver for row in matrix.toolkit_drivers})))
    component = dice.choice([row for row in matrix.components if row.package.endswith("-cu12")])
    pin = ("--with", f"{component.package}=={component.version}")
    return list(dice.choice([
        (torch, python), (torch, cuda), (torch, flash_attn), (torch, arch), (driver, torch), (torch, pin),
        (torch, python, flash_attn), (cuda, python), (torch, python, pin), (arch, cuda),
    ]))


def test_drawn_conflicts_name_only_what_is_needed(shop: Shop) -> None:
    seed = int(os.environ.get("STACKFIX_SEED") or random.SystemRandom().randrange(2**32))
    print(f"\nSTACKFIX_SEED={seed}")  # noqa: T201 - shown when the test fails
    dice, matrix = random.Random(seed), load_matrix()  # noqa: S311 - a draw, no secret
    judged = 0
    while judged < DRAWS:
        asked = draw(dice, matrix)
        rest = [] if any(flag == "--flash-attn" for flag, _ in asked) else ["--no-flash-attn"]
        run = shop.lock([*words_of(asked), *rest])
        if run.status != 0:
            judge(shop, asked, rest, error_of(run))
            judged += 1


def judge(shop: Shop, asked: Sequence[tuple[str, str]], rest: Sequence[str], error: dict[str, Any]) -> None:
    """The named causes clash by themselves, and not without any one of them; each offer solves the whole request.

    A drawn request may clash in two ways at once; the error then names one of them, so only the named are asked here.
    """
    causes = named(error)
    assert causes, (asked, error)
    assert causes <= set(asked), (asked, error)
    alone = shop.lock([*words_of(sorted(causes)), *rest])
    assert alone.status == 1, (asked, causes, alone)
    for one in sorted(causes):
        freed = shop.lock([*(words_of(sorted(causes - {one})) or ("--torch", "2.3")), *rest])
        assert freed.status == 0, (asked, one, error, freed)
    for offer in error["nearest"]:
        taken = shop.lock(offered(offer["command"]))
        assert taken.status == 0, (asked, offer, taken)
