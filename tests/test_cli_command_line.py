"""A request and the command line that asks it are the same thing said twice."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackfix.cli.command_line import join_command, request_arguments, short_version
from stackfix.cli.lock import command
from stackfix.cli.options import LockOptions
from stackfix.cli.request import read_request
from stackfix.request.versions import version_specifier
from stackfix.resolve.records import Requirement, StackRequest


def asked_again(line: str) -> StackRequest:
    """The request that the command line `line` asks, by the real option parser."""
    words = shlex.split(line)
    assert words[:2] == ["stackfix", "lock"]
    values = command.make_context("lock", words[2:]).params
    common = {"as_json", "quiet", "verbose", "color", "offline", "cache_dir"}
    options = LockOptions(**{name: value for name, value in values.items() if name not in common})
    return read_request(options, kept=()).stack


@pytest.mark.parametrize("text", ["2.3", "2.3.1", "2", ">=2.2,<2.5", "==2.3", "2.3.1.*", "2.8.3.post1", "==2.*"])
def test_a_short_version_asks_the_same(text: str) -> None:
    specifier = version_specifier(text)
    short = short_version(specifier)
    assert short is not None
    assert version_specifier(short) == specifier


TEXTS = ["transformers>=4.40", "jax[cuda12]==0.4.33", 'numpy<2; python_version < "3.12"', "einops"]
REQUIREMENTS = st.lists(
    st.sampled_from(TEXTS).flatmap(
        lambda text: (st.just(value=False) if "[" in text else st.booleans()).map(
            lambda limits: Requirement(
                text=text, origin=f"--constraint {text}" if limits else f"--with {text}", constraint=limits
            )
        )
    ),
    max_size=3,
)


@given(
    torch=st.sampled_from([None, "2.3", "2.3.1", ">=2.2,<2.5"]),
    cuda=st.sampled_from([None, "12.1", "12", "cpu"]),
    pythons=st.sampled_from([(), ("3.11",), ("3.10", "3.12")]),
    platforms=st.sampled_from([("linux-64",), ("linux-64", "linux-aarch64")]),
    flash_attn=st.sampled_from([(None, False), ("2.6.3", False), (None, True)]),
    requirements=REQUIREMENTS,
    driver=st.sampled_from([None, "470.256.02"]),
    gpu_archs=st.sampled_from([(), ("sm_90", "sm_120")]),
    cuda_compat=st.booleans(),
)
def test_the_command_of_a_request_asks_that_request(
    torch: str | None, cuda: str | None, pythons: tuple[str, ...], platforms: tuple[str, ...],
    flash_attn: tuple[str | None, bool], requirements: list[Requirement], driver: str | None,
    gpu_archs: tuple[str, ...], cuda_compat: bool,
) -> None:
    version, without = flash_attn
    # the parser lists --with before --constraint
    ordered = tuple(sorted(requirements, key=lambda requirement: requirement.constraint))
    asked_first = StackRequest(
        torch=version_specifier(torch) if torch else None, cuda=cuda, pythons=pythons, platforms=platforms,
        flash_attn=version_specifier(version) if version else None, no_flash_attn=without,
        requirements=ordered, driver=driver, gpu_archs=gpu_archs, cuda_compat=cuda_compat,
    )
    again = asked_again(join_command(request_arguments(asked_first)))
    assert again.with_(default_python=asked_first.default_python) == asked_first
