"""Hostile servers: each one clear error or the safe choice, nothing of it in a lockfile, bounded in memory and time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hostile.answers import ANSWERS
from tests.hostile.confusion import CONFUSION
from tests.hostile.judge import play
from tests.hostile.links import LINKS
from tests.hostile.logins import LOGINS
from tests.hostile.measured import Warm
from tests.hostile.pages import PAGES
from tests.hostile.records import Scenario
from tests.hostile.redirects import REDIRECTS
from tests.hostile.replicas import REPLICAS
from tests.hostile.wheels import WHEELS

CORPUS = (*ANSWERS, *REDIRECTS, *PAGES, *LINKS, *WHEELS, *LOGINS, *CONFUSION, *REPLICAS)


@pytest.fixture(scope="module")
def warm() -> Iterator[Warm]:
    with Warm() as process:
        yield process


@pytest.mark.parametrize("scenario", CORPUS, ids=lambda scenario: scenario.name)
def test_one_clear_error_or_the_safe_choice(scenario: Scenario, tmp_path: Path, warm: Warm) -> None:
    play(scenario, tmp_path, warm)
