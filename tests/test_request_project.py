"""[tool.stackfix] and stackfix.toml: the same keys as the options, all faults at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stackfix.errors import BadInput
from stackfix.request.project import ProjectStack, read_project

EVERY_KEY = """
torch = "2.3"
cuda = "12.1"
python = ["3.10", "3.11"]
platform = "linux-64"
glibc = "2.28"
flash-attn = ">=2.5"
with = ["transformers>=4.40", "accelerate"]
constraint = "numpy<2"
requirements = ["requirements.in"]
driver = "550.54"
cuda-compat = true
gpu-arch = "9.0"
exclude-newer = 2024-07-01
format = ["requirements", "pylock"]
output = "locks"
index-url = "https://index.example/simple"
extra-index-url = ["https://b.example/simple"]
torch-index = "https://t.example/whl"
flash-attn-source = "wheels"
channel = ["conda-forge"]
"""


def read(folder: Path, text: str, name: str = "stackfix.toml") -> tuple[ProjectStack, ...]:
    (folder / name).write_text(text, encoding="utf-8")
    return read_project(folder)


def refused(folder: Path, text: str, name: str = "stackfix.toml") -> BadInput:
    with pytest.raises(BadInput) as caught:
        read(folder, text, name)
    return caught.value


def test_every_key(tmp_path: Path) -> None:
    assert read(tmp_path, EVERY_KEY) == (ProjectStack(
        name=None, file="stackfix.toml", table="the top level", torch="2.3", cuda="12.1", pythons=("3.10", "3.11"),
        platforms=("linux-64",), glibc="2.28", flash_attn=">=2.5", with_=("transformers>=4.40", "accelerate"),
        constraints=("numpy<2",), requirement_files=("requirements.in",), driver="550.54", cuda_compat=True,
        gpu_archs=("9.0",), exclude_newer="2024-07-01", formats=("requirements", "pylock"), directory="locks",
        index_url="https://index.example/simple", extra_index_urls=("https://b.example/simple",),
        torch_index="https://t.example/whl", flash_attn_source="wheels", channels=("conda-forge",),
    ),)


def test_pyproject_says_the_same(tmp_path: Path) -> None:
    stack, = read(tmp_path, f"[project]\nname = 'x'\n[tool.stackfix]\n{EVERY_KEY}", "pyproject.toml")
    assert (stack.file, stack.table, stack.torch) == ("pyproject.toml", "[tool.stackfix]", "2.3")


def test_named_stacks_stand_on_what_is_above(tmp_path: Path) -> None:
    train, serve, plain = read(tmp_path, """
        [tool.stackfix]
        torch = "2.3"
        with = ["transformers"]
        flash-attn = "2.5.8"
        [tool.stackfix.stacks.train]
        with = ["accelerate"]
        [tool.stackfix.stacks.serve]
        torch = "2.4"
        no-flash-attn = true
        [tool.stackfix.stacks.plain]
        flash-attn = false
    """, "pyproject.toml")
    assert (train.name, train.torch, train.with_, train.flash_attn) == ("train", "2.3", ("accelerate",), "2.5.8")
    assert train.table == "[tool.stackfix.stacks.train]"
    assert (serve.name, serve.torch, serve.with_) == ("serve", "2.4", ("transformers",))
    assert (serve.flash_attn, serve.no_flash_attn) == (None, True)
    assert (plain.flash_attn, plain.no_flash_attn) == (None, True)


def test_nothing_that_speaks_of_stackfix(tmp_path: Path) -> None:
    assert read_project(tmp_path) == ()
    assert read(tmp_path, "[tool.other]\nx = 1\n", "pyproject.toml") == ()


def test_an_empty_file_is_a_stack_with_all_left_open(tmp_path: Path) -> None:
    assert read(tmp_path, "") == (ProjectStack(name=None, file="stackfix.toml", table="the top level"),)


def test_both_files(tmp_path: Path) -> None:
    (tmp_path / "stackfix.toml").write_text("torch = '2.3'")
    fault = refused(tmp_path, "[tool.stackfix]", "pyproject.toml")
    assert "both stackfix.toml and [tool.stackfix]" in fault.reason
    assert len(read(tmp_path, "[tool.other]", "pyproject.toml")) == 1


def test_all_faults_are_told_at_once_with_table_and_key(tmp_path: Path) -> None:
    fault = refused(tmp_path, """
        torch = 2.10
        cuda = "cu121"
        pyhton = "3.11"
        flash-attn = true
        cuda-compat = "yes"
        driver = ""
        [stacks.train]
        with = ["a", 3]
        flash-attn = "2.5.8"
        no-flash-attn = true
        gpu-arch = "H100"
        [stacks."bad name"]
        [stacks.ok]
    """)
    assert fault.thing == "stackfix.toml"
    assert fault.reason.split("; ") == [
        "the top level torch: is float, not a text in quotes",
        "the top level cuda: 'cu121' is not a CUDA version",
        "the top level pyhton: no such key",
        "the top level flash-attn: true is no version",
        "the top level cuda-compat: is str, not true or false",
        "the top level driver: is empty",
        "[stacks.train] with: is int, not a text in quotes",
        "[stacks.train] gpu-arch: 'H100' is not a GPU architecture",
        "[stacks.train] no-flash-attn: excludes flash-attn",
        "[stacks.bad name] bad name: a stack's name is made of letters, digits, '-' and '_' (at most 64)",
    ]
    for hint in ("torch: put it in quotes: as a number, 2.10 is 2.1", "cuda: write `12.1`",
                 "pyhton: did you mean `python`?"):
        assert hint in str(fault.hint)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[stacks]\ntrain = 1", "[stacks.train] train: is not a table"),
        ("stacks = 1", "the top level stacks: is not a table"),
        ("with = [['a']]", "with: is list, not a text in quotes"),
        ("exclude-newer = 1", "exclude-newer: is int"),
        ("python = '3.11.2'", "'3.11.2' is not a Python minor version"),
        ("[torch]\nversion = '2.3'", "torch: is dict, not a text in quotes"),
        ("torch = '2.3", "is not TOML"),
        ("a = " + "[" * 3000, "is not TOML"),
    ],
)
def test_one_fault(tmp_path: Path, text: str, reason: str) -> None:
    assert reason in str(refused(tmp_path, text))


@pytest.mark.parametrize(("key", "meant"), [
    ("Torch", "torch"), ("pythons", "python"), ("gpu_arch", "gpu-arch"), ("flash_attn", "flash-attn"),
    ("dependencies", "with"), ("formats", "format"), ("cudaa", "cuda"),
])
def test_a_key_that_is_nearly_one(tmp_path: Path, key: str, meant: str) -> None:
    assert f"did you mean `{meant}`?" in str(refused(tmp_path, f"{key} = 'x'").hint)


def test_a_key_that_is_like_none_shows_the_keys(tmp_path: Path) -> None:
    assert "torch, cuda, python" in str(refused(tmp_path, "zzz = 1").hint)


def test_a_file_with_faults_without_end(tmp_path: Path) -> None:
    text = "\n".join(f"zzz{n} = 1" for n in range(500))
    assert "; and 480 more" in refused(tmp_path, text).reason


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "stackfix.toml").mkdir()
    with pytest.raises(BadInput, match="is not a regular file"):
        read_project(tmp_path)
    (tmp_path / "stackfix.toml").rmdir()
    (tmp_path / "stackfix.toml").write_bytes(b"torch = '2.3'\nx = '\xff'\n")
    with pytest.raises(BadInput, match="line 2: is not UTF-8 text"):
        read_project(tmp_path)
    with (tmp_path / "stackfix.toml").open("wb") as stream:
        os.truncate(stream.fileno(), 5 * 1024 * 1024)
    with pytest.raises(BadInput, match="is larger than 4 MB"):
        read_project(tmp_path)


@pytest.mark.parametrize("tool", ["tool = 1", "tool.stackfix = 1", "[[tool.stackfix]]"])
def test_a_pyproject_that_says_something_else(tmp_path: Path, tool: str) -> None:
    if tool == "tool = 1":
        assert read(tmp_path, tool, "pyproject.toml") == ()
    else:
        assert refused(tmp_path, tool, "pyproject.toml").reason == "tool.stackfix is not a table"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5).map(lambda text: text.replace("\r", "")),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["torch", "x"]), inner, max_size=2),
    max_leaves=4,
)
KEYS = st.sampled_from(["torch", "cuda", "python", "with", "stacks", "flash-attn", "no-flash-attn", "cuda-compat",
                        "exclude-newer", "zzz"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.dictionaries(KEYS, VALUES.filter(lambda value: value is not None), max_size=4))
def test_any_document_is_stacks_or_faults(tmp_path: Path, document: dict[str, object]) -> None:
    import tomli_w

    try:
        text = tomli_w.dumps(document)
    except TypeError:
        return          # a list with None in it is no TOML
    try:
        stacks = read(tmp_path, text)
    except BadInput as fault:
        stacks = ()
        shown = f"{fault} {fault.next_step()}"
    else:
        shown = "stackfix.toml"
    assert stacks or "stackfix.toml" in shown
