"""What a real loader says of the extension wheels, after `import torch`: one JSON line for each shared object.

    python -m tests.abi_survey.dlopen --torch 2.3.1 --python VENV/bin/python --results FILE.jsonl

Goes wheel by wheel (download, unpack the shared objects, open each, delete); what FILE has already is not done again.
`--torch` and `--python` may be given several times, in pairs: each wheel is downloaded once for all of them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from stackfix.almanac.fetch import download
from stackfix.almanac.manifest import read_manifest
from stackfix.almanac.records import ManifestWheel
from stackfix.inspect.wheel_archive import WheelArchive
from stackfix.inspect.wheel_parts import is_shared_object
from stackfix.matrix.toml_files import matrix_directory

CHILD = Path(__file__).with_name("dlopen_child.py")


class Loader:
    """A child process that has imported one torch."""

    def __init__(self, python: str, version: str) -> None:
        environ = {name: value for name, value in os.environ.items()
                   if not name.startswith(("PYTHON", "LD_", "PIP_"))}
        self.child = subprocess.Popen([python, "-I", "-B", str(CHILD)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL, text=True, env=environ)
        self.torch = version
        stated = str(self.answer().get("torch"))
        if stated.partition("+")[0] != version:
            raise SystemExit(f"{python} has torch {stated}, not {version}")

    def answer(self) -> dict[str, Any]:
        assert self.child.stdout is not None
        line = self.child.stdout.readline()
        if not line:
            raise SystemExit(f"the process with torch {self.torch} ended with {self.child.wait()}")
        found: dict[str, Any] = json.loads(line)
        return found

    def open(self, path: Path, siblings: dict[str, str]) -> dict[str, Any]:
        assert self.child.stdin is not None
        self.child.stdin.write(json.dumps({"path": str(path), "siblings": siblings}) + "\n")
        self.child.stdin.flush()
        return self.answer()

    def close(self) -> None:
        assert self.child.stdin is not None
        self.child.stdin.close()
        self.child.wait()


def unpack(wheel: Path, folder: Path) -> dict[str, Path]:
    """The shared objects of a wheel below `folder`, by their names in it."""
    archive = WheelArchive(wheel)
    found: dict[str, Path] = {}
    try:
        for name in sorted(archive.members):
            if is_shared_object(name):
                target = found[name] = folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("xb") as stream:
                    archive.unpack(name, stream)
    finally:
        archive.close()
    return found


def survey(wheel: ManifestWheel, loaders: Sequence[Loader]) -> Iterator[dict[str, Any]]:
    """The loaders' answers for each shared object of one wheel."""
    with tempfile.TemporaryDirectory(prefix="stackfix-survey-") as name:
        folder = Path(name)
        path = download(wheel, folder)
        files = unpack(path, folder / "unpacked")
        path.unlink()
        siblings = {each.name: str(each) for each in files.values()}
        for loader in loaders:
            for inside, file in files.items():
                found = loader.open(file, siblings)
                if "file" in found:
                    found["file"] = found["file"].removeprefix(f"{folder / 'unpacked'}/")
                yield {"wheel": wheel.file, "path": inside, "torch": loader.torch, **found}
            if not files:
                yield {"wheel": wheel.file, "path": None, "torch": loader.torch, "outcome": "nothing"}


def run(wheels: Iterable[ManifestWheel], loaders: Sequence[Loader], results: Path) -> None:
    """Adds to `results` what it lacks."""
    lines = results.read_text(encoding="utf-8").splitlines() if results.exists() else []
    done = {(row["wheel"], row["torch"]) for row in map(json.loads, lines)}
    for wheel in wheels:
        left = [each for each in loaders if (wheel.file, each.torch) not in done]
        if left:
            rows = list(survey(wheel, left))
            with results.open("a", encoding="utf-8") as stream:
                stream.writelines(json.dumps(row, sort_keys=True) + "\n" for row in rows)
            print(f"{wheel.file}: {len(rows)} answers", file=sys.stderr, flush=True)  # noqa: T201 - how far it is


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.abi_survey.dlopen")
    parser.add_argument("--python", action="append", required=True, help="of an environment with that torch")
    parser.add_argument("--torch", action="append", required=True)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--manifest", type=Path, default=matrix_directory() / "abi" / "extensions.toml")
    parser.add_argument("--only", default="", help="wheels whose names begin with this")
    asked = parser.parse_args(words)
    with ExitStack() as stack:
        loaders = [Loader(python, version) for python, version in zip(asked.python, asked.torch, strict=True)]
        for loader in loaders:
            stack.callback(loader.close)
        wheels = [each for each in read_manifest(asked.manifest) if each.file.startswith(asked.only)]
        run(wheels, loaders, asked.results)


if __name__ == "__main__":
    main()
