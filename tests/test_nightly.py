"""The names of nightlies, and how they are asked for."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackfix.errors import BadInput
from stackfix.nightly import Nightly, cuda_of, dated, is_date, is_nightly_path, nightly_of, path_of
from stackfix.request.versions import torch_specifier
from stackfix.resolve.nightly_ask import NightlyNeedsDate, kept_of_kind, nightly_asked
from stackfix.resolve.pep508 import parse_specifier


@pytest.mark.parametrize(("text", "found"), [
    ("2.10.0.dev20251015", Nightly(date="20251015", release="2.10.0")),
    ("2.10.0.dev20251015+cu128", Nightly(date="20251015", release="2.10.0", path="cu128")),
    ("2.9.0.DEV20250902+CPU", Nightly(date="20250902", release="2.9.0", path="cpu")),
    ("2.10.0", None), ("2.10.0.dev0", None), ("2.10.0.dev20251345", None), ("2.10.0rc1", None),
    ("2.10.0a0+git7416ffc", None), ("2.10.0.dev202510150", None),
])
def test_a_version_names_a_night(text: str, found: Nightly | None) -> None:
    assert nightly_of(text) == found


@pytest.mark.parametrize(("text", "day"), [
    ("nightly-2025-10-15", "2025-10-15"), ("nightly-20251015", "2025-10-15"), (" Nightly-2024-02-29 ", "2024-02-29"),
    ("nightly", None), ("nightly-2025-02-29", None), ("nightly-2025-1-5", None), ("2025-10-15", None),
])
def test_a_day_names_one_too(text: str, day: str | None) -> None:
    found = dated(text)
    assert (None if found is None else found.day) == day


@given(st.integers(min_value=0, max_value=9999), st.integers(min_value=0, max_value=99), st.integers(0, 99))
def test_a_date_is_one_of_the_calendar(year: int, month: int, day: int) -> None:
    try:
        date(year, month, day)
        real = True
    except ValueError:
        real = year == 0 and is_date(f"0000{month:02}{day:02}")     # the calendar of Python begins with the year 1
    assert is_date(f"{year:04}{month:02}{day:02}") is real


@given(st.integers(min_value=0, max_value=20_000))
def test_every_night_is_found_in_its_version(days: int) -> None:
    night = (date(2000, 1, 1) + timedelta(days=days)).strftime("%Y%m%d")
    found = nightly_of(f"2.10.0.dev{night}+cu130")
    assert found is not None
    assert found.version == f"2.10.0.dev{night}"


@pytest.mark.parametrize(("cuda", "path"), [
    ("12.8", "nightly/cu128"), ("13.0", "nightly/cu130"), ("cpu", "nightly/cpu"), ("12.8.1", "nightly/cu128"),
])
def test_paths_are_named_by_cuda(cuda: str, path: str) -> None:
    assert path_of(cuda) == path
    assert is_nightly_path(path)
    assert not is_nightly_path(path.removeprefix("nightly/"))
    assert cuda_of(path) == ".".join(cuda.split(".")[:2])


@pytest.mark.parametrize(("text", "specifier"), [
    ("2.10.0.dev20251015", "==2.10.0.dev20251015"), ("== 2.10.0.dev20251015+cu128", "==2.10.0.dev20251015+cu128"),
    ("nightly-20251015", "nightly-2025-10-15"), ("nightly", "nightly"), ("2.3", "==2.3.*"),
    (">=2.10.0.dev0", ">=2.10.0.dev0"),
])
def test_what_the_option_takes(text: str, specifier: str) -> None:
    assert torch_specifier(text) == specifier


def test_a_release_with_a_build_is_refused_as_ever() -> None:
    with pytest.raises(BadInput, match="names a build, not a release"):
        torch_specifier("2.3.1+cu118")


def asked(*texts: str) -> Nightly | None:
    return nightly_asked((specifier, f"--with torch{text}") for text in texts
                         if (specifier := parse_specifier(text)) is not None)


@pytest.mark.parametrize("texts", [
    (">=2.3",), ("==2.3.1",), ("<2.10.0.dev20251015",), ("<=2.10.0.dev20251015", "!=2.10.0.dev20251001"),
    (">=2.10.0rc1",), ("==2.10.0a0+git7416ffc",), (),
])
def test_what_asks_for_no_nightly(texts: tuple[str, ...]) -> None:
    assert asked(*texts) is None


def test_the_most_exact_of_several_counts() -> None:
    exact = Nightly(date="20251015", release="2.10.0", path="cu128")
    assert asked("===nightly-2025-10-15", "==2.10.0.dev20251015", ">=2.9", "==2.10.0.dev20251015+cu128") == exact


@pytest.mark.parametrize("text", [">=2.10.0.dev0", ">2.10.0.dev20251015", "~=2.10.0.dev20251015", "==2.10.0.dev0",
                                  "==2.10.dev1", ">=2.9,<2.10,>=2.9.0.dev20250902"])
def test_a_range_over_nights_is_refused_by_its_place(text: str) -> None:
    with pytest.raises(NightlyNeedsDate) as caught:
        asked(text)
    assert caught.value.thing == f"--with torch{text}"
    assert "the newest are x" in str(caught.value.with_days("the newest are x").next_step())


def test_pins_of_the_other_kind_are_let_go_and_no_others() -> None:
    stable = (("torch", "2.8.0"), ("nvidia-cudnn-cu12", "9.10.2.21"), ("Triton", "3.4.0"), ("numpy", "2.1.0"))
    nightly = Nightly(date="20250902", release="2.9.0")
    assert kept_of_kind(stable, None) == stable
    assert kept_of_kind(stable, nightly) == (("numpy", "2.1.0"),)
    of_night = (("torch", "2.9.0.dev20250901+cu128"), ("torchvision", "0.24.0.dev20250901"), ("numpy", "2.1.0"))
    assert kept_of_kind(of_night, nightly) == of_night
    assert kept_of_kind(of_night, None) == (("numpy", "2.1.0"),)
    assert kept_of_kind((("numpy", "2.1.0"),), nightly) == (("numpy", "2.1.0"),)
