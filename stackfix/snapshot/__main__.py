"""`python -m stackfix.snapshot --from DIR|--live --make|--check`: makes `matrices/conda`, or compares it.

--from DIR      the channels of a folder: <channel>/<subdir>/repodata.json; say with --source where they come from
--live          the channels as they are now, cut to what their torch builds make: an hour
--make          write the files, all or none
--check         would they be the same? 1 where not; writes nothing
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path

from stackfix.errors import AnswerIsNo, BadInput, StackfixError
from stackfix.matrix.load import load_matrix
from stackfix.matrix.toml_files import matrix_directory
from stackfix.snapshot.holes import holes_of
from stackfix.snapshot.live import read_live
from stackfix.snapshot.pack import render_files
from stackfix.snapshot.read import read_folder
from stackfix.snapshot.records import Made
from stackfix.sources.cache_place import default_cache_dir
from stackfix.sources.conda_channels import open_channels
from stackfix.write.replace import current_bytes, replace_files

PLATFORMS = ("linux-64", "linux-aarch64")
CHANNELS = ("pytorch", "nvidia", "conda-forge")
INTERRUPTED = 130


def main(words: Sequence[str] | None = None) -> int:
    """Exit status: 0, or that of the one error, which is told on stderr."""
    asked = arguments().parse_args(words)
    try:
        made = take_live(asked) if asked.live else read_folder(asked.folder, asked.source or "", asked.why)
        files = render_files(made, holes_of(made))
        if asked.make:
            replace_files(asked.into, {**dict.fromkeys(stale(asked.into, files)), **files})
        else:
            compare(asked.into, files)
    except StackfixError as error:
        step = error.next_step()
        sys.stderr.write(f"error: {error.what()}\n" + (f"  {step}\n" if step else ""))
        return error.exit_status
    except KeyboardInterrupt:
        sys.stderr.write("interrupted: the files are as they were\n")
        return INTERRUPTED
    return 0


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m stackfix.snapshot", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    origin = parser.add_mutually_exclusive_group(required=True)
    origin.add_argument("--from", dest="folder", metavar="DIR", type=Path)
    origin.add_argument("--live", action="store_true")
    deed = parser.add_mutually_exclusive_group(required=True)
    deed.add_argument("--make", action="store_true")
    deed.add_argument("--check", action="store_true")
    parser.add_argument("--source", metavar="TEXT", help="where the records of --from come from")
    parser.add_argument("--why", metavar="TEXT", default="", help="why --from has these records and no others: a record"
                        " is here because TEXT")
    parser.add_argument("--channel", metavar="C", action="append", help="of --live, in the order of their priority")
    parser.add_argument("--platform", metavar="P", action="append", help="of --live")
    parser.add_argument("--into", metavar="DIR", type=Path, default=matrix_directory() / "conda")
    return parser


def take_live(asked: argparse.Namespace) -> Made:
    """What the live channels have now."""
    names = tuple(asked.channel or CHANNELS)
    unknown = [platform for platform in asked.platform or () if platform not in PLATFORMS]
    if unknown:
        raise BadInput(f"--platform {unknown[0]}", f"is none of {', '.join(PLATFORMS)}")
    channels = open_channels(
        names, bases=load_matrix().sources.conda_channels, environ=os.environ, home=Path.home(),
        cache_dir=default_cache_dir(os.environ, Path.home()))
    with closing(channels):
        today = datetime.now(timezone.utc).date().isoformat()
        return read_live(channels, names, asked.platform or PLATFORMS, today, tell)


def tell(text: str) -> None:
    """One line on stderr."""
    sys.stderr.write(f"{text}\n")


def stale(folder: Path, files: dict[str, bytes]) -> tuple[str, ...]:
    """Files of an earlier snapshot that are no part of this one."""
    return tuple(path.name for path in sorted(folder.glob("*.json.xz")) if path.name not in files)


def compare(folder: Path, files: dict[str, bytes]) -> None:
    """Raises AnswerIsNo where a file of the folder would be another."""
    different = [name for name, content in files.items() if current_bytes(folder / name) != content]
    different += stale(folder, files)
    if different:
        raise AnswerIsNo(f"{folder}: {', '.join(different)} would be different")


if __name__ == "__main__":
    sys.exit(main())
