"""`stackfix lock` as a whole, against a small index on loopback."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli_world import ASKED, Say, World

BY_HAND = "numpy==1.26.4   # mine\n"


# -- files of others -------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", ["requirements.txt", "pylock.toml"])
def test_a_file_by_hand_is_overwritten_only_when_told(name: str, world: World, say: Say) -> None:
    Path(name).write_text(BY_HAND)
    said = say("lock", *ASKED)
    assert (said.status, said.out) == (2, ""), said
    assert name in said.err
    assert "--overwrite" in said.err
    assert Path(name).read_text() == BY_HAND
    assert not {"requirements.txt", "pylock.toml"} - {name} & {path.name for path in Path().iterdir()}
    assert world.asked == [], "refused before the index is asked"
    assert say("lock", *ASKED, "--overwrite").status == 0
    assert "stackfix" in Path(name).read_text()
    assert say("lock", *ASKED).status == 0, "what is ours now is replaced unasked"


def test_a_file_by_hand_in_the_place_of_one_of_several_targets_is_refused(world: World, say: Say) -> None:
    world.projects["torch"].update({
        name.replace("cp311", "cp310"): content for name, content in world.projects["torch"].items()})
    place = Path("requirements-cp310-linux-64.txt")
    place.write_text(BY_HAND)
    said = say("lock", *ASKED, "--python", "3.10")
    assert said.status == 2, said
    assert place.name in said.err
    assert place.read_text() == BY_HAND


def test_check_reads_a_file_by_hand_as_different(world: World, say: Say) -> None:
    Path("requirements.txt").write_text(BY_HAND)
    said = say("lock", *ASKED, "--check", "--format", "requirements")
    assert said.status == 1, said
    assert "requirements.txt:1" in said.out
