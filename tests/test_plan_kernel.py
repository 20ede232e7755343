"""An env block in a kernel.json: the rest of the file stays as it was."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackfix.errors import BadInput
from stackfix.plan.kernel import kernel_steps

PATH = "share/jupyter/kernels/python3/kernel.json"
# As ipykernel writes it
TEXT = """{
 "argv": [
  "/p/bin/python",
  "-m",
  "ipykernel_launcher",
  "-f",
  "{connection_file}"
 ],
 "display_name": "Python 3 (ipykernel)",
 "language": "python",
 "metadata": {
  "debugger": true
 }
}"""


def test_only_the_block_is_new() -> None:
    (step,) = kernel_steps(PATH, TEXT, {"LD_LIBRARY_PATH": "/p/jit/lib:/x"})
    assert step.text == TEXT[:-2] + ',\n "env": {\n  "LD_LIBRARY_PATH": "/p/jit/lib:/x"\n }\n}'
    assert (step.path, step.mode) == (PATH, 0o644)


def test_once_more_is_nothing_and_other_variables_stay() -> None:
    document = {"env": {"B": "1", "LD_LIBRARY_PATH": "/bad"}, "argv": ["é"]}
    text = json.dumps(document, indent=4, ensure_ascii=False) + "\n"
    (step,) = kernel_steps(PATH, text, {"LD_LIBRARY_PATH": None, "A": "2"}, mode=0o600)
    assert step.text == text.replace('"/bad"', '"",\n        "A": "2"')
    assert kernel_steps(PATH, step.text, {"LD_LIBRARY_PATH": None, "A": "2"}) == ()
    assert step.mode == 0o600


@pytest.mark.parametrize(("text", "value"), [
    ("[]", "x"), ("{", "x"), ("{}", "x"), ('{"argv": "python"}', "x"), ('{"argv": [], "env": 3}', "x"),
    (TEXT, "/a/$HOME"), (TEXT, "/a\udcff"), ("[" * 100_000, "x"), (TEXT, "a\0b"),
])
def test_what_is_no_kernel_or_no_value_is_refused(text: str, value: str) -> None:
    with pytest.raises(BadInput):
        kernel_steps(PATH, text, {"LD_LIBRARY_PATH": value})


def test_a_path_outside_is_refused() -> None:
    with pytest.raises(BadInput):
        kernel_steps("../kernel.json", TEXT, {"A": "1"})


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda part: st.lists(part, max_size=2) |
                    st.dictionaries(st.text(), part, max_size=2), max_leaves=6)
WORDS = st.text(st.characters(codec="utf-8", exclude_characters="$\0"))


def test_half_a_character_stays_an_escape() -> None:
    (step,) = kernel_steps(PATH, '{"argv": ["é", "\\ud800"]}', {"A": "1"})
    assert json.loads(step.text.encode()) == {"argv": ["é", "\ud800"], "env": {"A": "1"}}


@given(st.dictionaries(st.text(), JSON, max_size=4), st.dictionaries(st.text("AB", min_size=1), WORDS, max_size=3),
       st.none() | st.integers(1, 4))
def test_all_keys_come_through(other: dict[str, object], variables: dict[str, str], indent: int | None) -> None:
    document = {**other, "argv": ["python"], "env": {"OLD": "1"}}
    (step,) = kernel_steps(PATH, json.dumps(document, indent=indent), variables) or (None,)
    if step is not None:
        assert list(json.loads(step.text).items()) == [
            (name, {"OLD": "1", **variables} if name == "env" else value) for name, value in document.items()]
