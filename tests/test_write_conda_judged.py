"""Files of real environments, solved over the bundled records, before judges that share no code with stackfix."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from stackfix.conda.records import CondaTarget
from stackfix.write.conda_files import CONDA_FORMATS, plan_conda
from tests.conda_real import ENVIRONMENTS, judged_channels, snapshot_roots, solved_target, virtual_of
from tests.conda_samples import COMMAND, X86, pip_part, target
from tests.judges import conda_pip, conda_records
from tests.judges.conda_files import Judged, verdicts
from tests.judges.uv import UvJudge
from tests.lock_samples import PYTHON, loopback, sample_packages


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the bundled records are unpacked, once."""
    return tmp_path_factory.mktemp("cache")


def written(one: CondaTarget, folder: Path, cache: Path) -> Judged:
    """All conda files of the target, and the channels that it was solved over."""
    for file in plan_conda((one,), formats=CONDA_FORMATS, name=None, command=COMMAND):
        (folder / file.path).write_text(file.text, encoding="utf-8")
    platform = one.target.platform
    return Judged(
        lock=folder / "conda-lock.yml", explicit={platform: folder / f"conda-{platform}.lock"},
        environments={platform: folder / "environment.yml"}, pixi=folder / "pixi.lock",
        channels=judged_channels(one, snapshot_roots(folder / "channels", cache, one)),
        virtual={platform: virtual_of(one)}, priority=one.priority)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_judge_takes_the_files_of_a_real_environment(name: str, cache: Path, tmp_path: Path) -> None:
    how = dict(ENVIRONMENTS[name])
    one = solved_target(cache, *how.pop("specs"), **how, pip=pip_part())
    assert len(one.records) > 60
    said = verdicts(written(one, tmp_path, cache), tmp_path)
    assert said == dict.fromkeys(said, "")
    snapshot = one.snapshot
    assert snapshot is not None
    for path in ("conda-lock.yml", "environment.yml", "pixi.lock"):
        assert f"{snapshot.date}, {snapshot.digest}" in (tmp_path / path).read_text(encoding="utf-8")


def test_the_judges_see_a_record_that_is_not_the_channels(cache: Path, tmp_path: Path) -> None:
    one = solved_target(cache, "numpy 1.26.*")
    judged = written(one, tmp_path, cache)
    record = next(each for each in one.records if each.name == "numpy")
    base, folder = next(iter(judged.channels.values()))
    place = folder / record.subdir / "repodata.json"
    document = json.loads(place.read_text(encoding="utf-8"))
    document["packages.conda"][record.file_name]["md5"] = "0" * 32
    document["packages.conda"][record.file_name]["depends"].append("something-else")
    place.unlink()
    place.write_text(json.dumps(document), encoding="utf-8")
    said = verdicts(judged, tmp_path)
    assert "md5 is" in said["records"]
    assert "dependencies is" in said["records"]
    assert "depends is" in said["records"]
    assert "something-else" in said["re-solve"]
    shutil.rmtree(folder)
    conda_records.read_repodata.cache_clear()
    assert f"{base}/{record.subdir}/{record.file_name} is no record" in verdicts(judged, tmp_path)["records"]


def test_the_judges_see_a_pin_that_does_not_fit(cache: Path, tmp_path: Path) -> None:
    one = solved_target(cache, "numpy 1.26.*")
    judged = written(one, tmp_path, cache)
    path = judged.environments["linux-64"]
    text = path.read_text(encoding="utf-8")
    pin = re.search(r"- (numpy=\S+)\n", text)
    assert pin is not None
    path.write_text(text.replace(f"- {pin[1]}\n", ""), encoding="utf-8")
    assert verdicts(judged, tmp_path)["re-solve"] == ""
    path.write_text(text.replace(pin[1], "numpy=99.0=0"), encoding="utf-8")
    assert "numpy" in verdicts(judged, tmp_path)["re-solve"]


def test_uv_takes_the_pip_part_for_its_target(tmp_path: Path) -> None:
    with loopback(tmp_path / "index") as servers:
        one = target(pip=sample_packages(servers))
        for file in plan_conda((one,), formats=("conda-lock",), name=None, command=COMMAND):
            (tmp_path / file.path).write_text(file.text, encoding="utf-8")
        uv = UvJudge(index_url=servers.index_url, cache=tmp_path / "uv", python=PYTHON, platform="linux-64")
        lock = tmp_path / "conda-lock.yml"
        assert list(conda_pip.complaints(lock, X86.platform, uv, tmp_path)) == []
        text = lock.read_text(encoding="utf-8")
        torch = next(package for package in one.pip if package.name == "torch")
        lock.write_text(text.replace(str(torch.files[0].sha256), "0" * 64), encoding="utf-8")
        assert len(list(conda_pip.complaints(lock, X86.platform, uv, tmp_path))) == 1
