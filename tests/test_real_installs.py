"""Two locks really installed, hashes required: torch is imported and maps the libraries that the lock names."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from tests.judges.command import clean_environment, run, stackfix
from tests.judges.lockfile import read_entries

pytestmark = pytest.mark.real

NEEDED_BYTES = 16 << 30
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
# Runs inside the new environment: imports torch, then says which distribution owns each mapped library.
PROBE = """
import importlib.metadata, json, pathlib, torch
owner = {str(f.locate().resolve() if hasattr(f, "locate") else ""): (d.metadata["Name"], d.version)
         for d in importlib.metadata.distributions() for f in d.files or ()}
mapped = {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}
libraries = {path: owner[path] for path in map(lambda p: str(pathlib.Path(p).resolve()), mapped) if path in owner}
print(json.dumps({"torch": torch.__version__, "cuda": torch.version.cuda, "sum": torch.ones(3).sum().item(),
                  "libraries": libraries}))
"""


@pytest.mark.parametrize(("torch", "installer", "with_", "expected"), [
    ("2.3", "pip", (), {"nvidia-nvjitlink-cu12": "12.1.105", "nvidia-cusparse-cu12": "12.1.0.106"}),
    ("2.6", "uv", ("torchvision",), {"nvidia-nvjitlink-cu12": "12.4.127", "nvidia-cusparse-cu12": "12.3.1.170"}),
])
def test_the_installed_stack_maps_the_locked_libraries(
    torch: str, installer: str, with_: tuple[str, ...], expected: dict[str, str], tmp_path: Path,
) -> None:
    free = shutil.disk_usage(tmp_path).free
    if free < NEEDED_BYTES:
        pytest.skip(f"{free >> 30} GiB free at {tmp_path}, {NEEDED_BYTES >> 30} GiB needed")
    wanted = [word for name in with_ for word in ("--with", name)]
    made = stackfix("lock", "--torch", torch, "--python", PYTHON, "--no-flash-attn", *wanted, "--format",
                    "requirements", cwd=tmp_path, cache=tmp_path / "cache")
    assert made.status == 0, made
    requirements = tmp_path / "requirements.txt"
    install(installer, requirements, tmp_path)
    probed = run([tmp_path / "venv" / "bin" / "python", "-c", PROBE], cwd=tmp_path, env=clean_environment())
    assert probed.status == 0, probed
    said = json.loads(probed.stdout)
    locked = {entry.name: entry.version for entry in read_entries(requirements)}
    mapped = {name.lower().replace("_", "-"): version for name, version in said["libraries"].values()}
    assert said["torch"].partition("+")[0] == locked["torch"]
    assert said["sum"] == 3.0
    assert mapped.keys() <= locked.keys()
    assert mapped == {name: locked[name] for name in mapped}
    assert {name: mapped[name] for name in expected} == expected
    shutil.rmtree(tmp_path / "venv")


def install(installer: str, requirements: Path, folder: Path) -> None:
    """A fresh environment with exactly what the lock says."""
    created = run([sys.executable, "-m", "venv", "venv"], cwd=folder)
    assert created.status == 0, created
    python = folder / "venv" / "bin" / "python"
    words: list[str | Path]
    if installer == "uv":
        words = [shutil.which("uv") or "uv", "pip", "install", "--python", python, "--no-cache"]
    else:
        words = [python, "-m", "pip", "install", "--no-cache-dir"]
    done = run([*words, "--require-hashes", "-r", requirements], cwd=folder, env=clean_environment(), timeout=3000)
    assert done.status == 0, done
