"""Project names as users write them."""

from __future__ import annotations

import pytest

from stackfix.request.names import leading_name, normalise


@pytest.mark.parametrize("name", ["flash_attn", "Flash.Attn", "flash--attn", "FLASH-ATTN"])
def test_spellings_of_one_project_are_one_name(name: str) -> None:
    assert normalise(name) == "flash-attn"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("transformers>=4.40", "transformers"), ("jax[cuda12]==0.4.33", "jax"), (" Flash_Attn @ file:x", "flash-attn"),
        ("a", "a"), ("", None), ("-e .", None), ("./here", None),
    ],
)
def test_a_requirement_begins_with_its_project(text: str, name: str | None) -> None:
    assert leading_name(text) == name
