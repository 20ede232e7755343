"""The request as asks that can be taken away one at a time."""

from __future__ import annotations

import pytest

from stackfix.resolve.question import parse_request, without
from stackfix.resolve.records import Requirement, StackRequest

EVERYTHING = StackRequest(
    torch="==2.3.*", cuda="12.1", pythons=("3.10", "3.11"), platforms=("linux-64", "linux-aarch64"), glibc="2.17",
    flash_attn=">=2.5", driver="535.54.03", gpu_archs=("sm_80", "sm_90"), exclude_newer="2026-01-01",
    requirements=(
        Requirement(text="transformers>=4.40", origin="--with transformers>=4.40"),
        Requirement(text="torch<2.4", origin="requirements.in line 3"),
        Requirement(text="numpy<2", origin="--constraint numpy<2", constraint=True),
    ),
)


def test_asks_in_the_order_of_the_command_line_as_written() -> None:
    asks = [(asked.kind, asked.value, asked.flag) for asked in parse_request(EVERYTHING).asks]
    assert asks == [
        ("torch", "2.3", "--torch"), ("cuda", "12.1", "--cuda"), ("python", "3.10", "--python"),
        ("python", "3.11", "--python"), ("platform", "linux-64", "--platform"),
        ("platform", "linux-aarch64", "--platform"), ("glibc", "2.17", "--glibc"),
        ("flash-attn", ">=2.5", "--flash-attn"), ("driver", "535.54.03", "--driver"),
        ("gpu-arch", "sm_80", "--gpu-arch"), ("gpu-arch", "sm_90", "--gpu-arch"),
        ("exclude-newer", "2026-01-01", "--exclude-newer"), ("requirement", "transformers>=4.40", "--with"),
        ("requirement", "torch<2.4", "requirements.in line 3"), ("requirement", "numpy<2", "--constraint"),
    ]


@pytest.mark.parametrize("place", range(15))
def test_each_ask_can_be_taken_away_alone(place: int) -> None:
    asks = parse_request(EVERYTHING).asks
    rest = parse_request(without(EVERYTHING, asks[place])).asks
    expected = [asked for asked in asks if asked != asks[place]]
    if asks[place].value == "linux-aarch64":        # what is left is the default, and a default is not asked for
        expected = [asked for asked in expected if asked.kind != "platform"]
    assert list(rest) == expected


def test_all_taken_away_is_the_empty_request() -> None:
    request = EVERYTHING
    while parse_request(request).asks:
        request = without(request, parse_request(request).asks[0])
    assert request == StackRequest()


def test_torch_and_flash_attn_are_limits_of_the_stack_wherever_they_are_written() -> None:
    question = parse_request(EVERYTHING)
    assert [ask.place for ask in question.torch] == ["--torch 2.3", "requirements.in line 3"]
    assert question.wants_flash_attn
    limit = Requirement(text="flash-attn<3", origin="--constraint flash-attn<3", constraint=True)
    assert not parse_request(StackRequest(requirements=(limit,))).wants_flash_attn
    assert [line.name for line in question.lines] == ["transformers", "numpy"]
