"""Making the bundled records: the same records give the same bytes, and what is missing is counted."""

from __future__ import annotations

import json
import lzma
import re
from pathlib import Path

import pytest

from stackfix.conda.records import CondaAsk, CondaSolved, Spec
from stackfix.errors import BadInput
from stackfix.matrix.toml_files import matrix_directory
from stackfix.snapshot.__main__ import main
from stackfix.snapshot.holes import holes_of
from stackfix.snapshot.live import builds, read_live, row_of
from stackfix.snapshot.pack import render_files, render_subdir
from stackfix.snapshot.read import read_folder
from stackfix.sources.conda_snapshot import MANIFEST, read_manifest
from stackfix.sources.toml import loads
from tests.conda_channels import bundled_channels
from tests.conda_servers import channel_folder, opened, row

BUNDLED = matrix_directory() / "conda"


def channel_of(folder: Path) -> Path:
    """A folder of two channels, with holes."""
    bare = row("lib", "0.9")
    del bare["timestamp"], bare["sha256"]
    channel_folder(folder / "conda-forge", row("pytorch", "2.1.0", "lib >=1", build="cuda118_py311h1_0"),
                   row("pytorch", "2.3.0", "lib >=7", build="cuda120_py311h1_0", timestamp=1_720_000_000_000),
                   row("lib", "1.0", purls=["pkg:pypi/lib"]), bare)
    channel_folder(folder / "pytorch", row("xformers", "0.1", build="py311"))
    (folder / "inferred-constrains.json").write_text(json.dumps({"conda-forge/linux-64/lib-1.0-0.conda": ["x <2"]}))
    return folder


def test_the_same_records_give_the_same_bytes(tmp_path: Path) -> None:
    made = read_folder(channel_of(tmp_path), "a test", "the test wrote it")
    files = render_files(made, holes_of(made))
    again = read_folder(channel_of(tmp_path), "a test", "the test wrote it")
    assert render_files(again, holes_of(again)) == files
    assert set(files) == {MANIFEST, *(f"{channel}-{subdir}.json.xz" for channel in ("conda-forge", "pytorch")
                                      for subdir in ("linux-64", "noarch"))}
    document = json.loads(lzma.decompress(files["conda-forge-linux-64.json.xz"]))
    assert list(document) == sorted(document)
    assert len(document["packages.conda"]) == 4
    assert "purls" not in document["packages.conda"]["lib-1.0-0.conda"]
    manifest = loads(files[MANIFEST].decode())
    assert manifest["date"] == "2024-07-03"
    assert manifest["inferred"] == {"conda-forge/linux-64/lib-1.0-0.conda": ["x <2"]}


def test_holes_are_counted(tmp_path: Path) -> None:
    holes = holes_of(read_folder(channel_of(tmp_path), "a test", "the test wrote it"))
    assert holes == (
        "A record is here because the test wrote it: other versions and builds are missing.",
        "The constrains of 1 records were stated nowhere and inferred from their siblings (the table `inferred`).",
        ("1 of 5 records state no time, size, license or constrains, and no build of what they depend on, as"
         " conda-lock.yml has none of these: --exclude-newer leaves them out."),
        "1 records state no sha256 (1 of conda-forge).",
        ("Some records depend on something that no record here is (1 of conda-forge/linux-64); they cannot be"
         " chosen."),
        "conda-forge has no torch 2.2 here.", "flash-attn: none.", "torchaudio: none.", "torchvision: none.",
        "triton: none.", "xformers: one build (0.1 py311).", "torch for CUDA 13: 0 builds.",
        "Only records for linux-64 and noarch.")


def test_the_files_are_made_and_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, into = channel_of(tmp_path / "from"), tmp_path / "into"
    words = ["--from", str(source), "--source", "a test", "--into", str(into)]
    assert main([*words, "--check"]) == 1
    assert main([*words, "--make"]) == 0
    (into / "gone-linux-64.json.xz").write_bytes(b"")
    assert main([*words, "--check"]) == 1
    assert "gone-linux-64.json.xz would be different" in capsys.readouterr().err
    assert main([*words, "--make"]) == 0
    assert main([*words, "--check"]) == 0
    assert not (into / "gone-linux-64.json.xz").exists()
    assert read_manifest(into).files[0].channel == "conda-forge"
    channel_folder(source / "pytorch", row("xformers", "0.2", build="py311"))
    assert main([*words, "--check"]) == 1
    assert "pytorch-linux-64.json.xz" in capsys.readouterr().err


@pytest.mark.parametrize(("content", "said"), [(b"{", "is no JSON"), (b"[]", "is no JSON object"), (None, "holds no")])
def test_what_is_no_channel_is_one_error(content: bytes | None, said: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "c" / "noarch").mkdir(parents=True)
        (tmp_path / "c" / "noarch" / "repodata.json").write_bytes(content)
    with pytest.raises(BadInput, match=said):
        read_folder(tmp_path, "", "")


def test_an_unknown_platform_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--live", "--check", "--platform", "win-64"]) == 2
    assert "--platform win-64" in capsys.readouterr().err


def test_a_record_goes_through_ours_unchanged(tmp_path: Path) -> None:
    """What --live writes is what the channel said: every key that a lockfile could take is kept."""
    channels = bundled_channels(tmp_path)
    rows = json.loads(lzma.decompress((BUNDLED / "conda-forge-linux-64.json.xz").read_bytes()))["packages.conda"]
    for name in ("pytorch", "python", "libblas", "mkl", "numpy"):
        for record in channels.records(channels.channels, "linux-64", name):
            if record.subdir == "linux-64" and record.file_name.endswith(".conda"):
                stated = {key: value for key, value in rows[record.file_name].items() if value not in ([], "", None)}
                assert {key: value for key, value in row_of(record).items() if value not in ([], "")} == stated


def test_a_live_snapshot_holds_what_its_stacks_need(tmp_path: Path) -> None:
    rows = (
        *(row("pytorch", "2.3.0", "lib >=1", build=build, build_number=number) for number, build in
          enumerate(("cuda120_py311h1_0", "cuda120_py311h2_1", "cpu_py311h3_2"))),
        row("pytorch", "1.9.0", build="cuda111_py39h1_0"), row("lib", "1.0"), row("lib", "2.0"),
        row("torchvision", "0.18"), row("python", "3.11.9"), row("pip", "25.0"),
        row("unrelated", "1.0"), row("triton", "3.0", "nothing-has-this"))
    base = channel_folder(tmp_path / "conda-forge", *rows).parent
    channels = opened(tmp_path, condarc=f"custom_channels: {{conda-forge: '{base.as_uri()}'}}\n")
    told: list[str] = []
    made = read_live(channels, ("conda-forge",), ("linux-64",), "2026-01-01", told.append)
    [subdir] = made.subdirs
    assert set(subdir.rows) == {
        "pytorch-2.3.0-cuda120_py311h2_1.conda", "pytorch-2.3.0-cpu_py311h3_2.conda", "lib-2.0-0.conda",
        "torchvision-0.18-0.conda", "python-3.11.9-0.conda", "pip-25.0-0.conda"}
    assert [re.split(r": ", line)[2] for line in told] == [
        "torch 2.3.0 cpu_py311h3_2", "torch 2.3.0 cuda120_py311h2_1"]
    assert json.loads(render_subdir(subdir))["packages.conda"]["lib-2.0-0.conda"]["md5"] == row("lib", "2.0")["md5"]


def test_of_each_build_the_newest_is_taken(tmp_path: Path) -> None:
    channels = bundled_channels(tmp_path)
    every = channels.records(channels.channels, "linux-64", "pytorch")
    taken = builds(every)
    assert 20 < len(taken) < len(every)
    assert {record.version for record in taken} == {record.version for record in every if record.version >= "2"}
    one = taken[-1]
    answer = channels.solve(CondaAsk(platform="linux-64", channels=channels.channels, specs=(
        Spec(text=f"pytorch =={one.version} {one.build}", origin="test"),)))
    assert not isinstance(answer, CondaSolved)      # no machine was named
