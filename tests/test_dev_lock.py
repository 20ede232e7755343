"""The comparison of the development lock with the index page, against pages on loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from tests import dev_lock
from tests.replay.server import ReplayServer

GOOD, ALSO, WRONG = "a" * 64, "b" * 64, "c" * 64
LOCK = f"""\
# made by a test
first-one==1.2 ; python_version >= "3.10" \\
    --hash=sha256:{GOOD} \\
    --hash=sha256:{ALSO}
    # via -r in.txt
second==3.0.post1 \\
    --hash=sha256:{GOOD}
"""
PAGES = {
    "first-one": [("First_One-1.2-py3-none-any.whl", GOOD), ("first_one-1.2.tar.gz", ALSO),
                  ("first_one-1.1-py3-none-any.whl", WRONG), ("first-one.egg", WRONG)],
    "second": [("second-3.0.post1.tar.gz", GOOD)],
}


class _Index(BaseHTTPRequestHandler):
    as_json: ClassVar[bool] = True

    def do_GET(self) -> None:
        files = PAGES.get(self.path.strip("/"))
        if files is None:
            self.send_error(404)
            return
        if self.as_json:
            kind = "application/vnd.pypi.simple.v1+json"
            body = json.dumps({"files": [{"filename": name, "hashes": {"sha256": digest}} for name, digest in files]})
        else:
            kind = "text/html; charset=utf-8"
            body = "".join(f'<a href="../files/{name}#sha256={digest}">{name}</a>' for name, digest in files)
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        pass


class _HtmlIndex(_Index):
    as_json = False


@pytest.fixture(params=[_Index, _HtmlIndex], ids=["json", "html"])
def loopback(request: pytest.FixtureRequest) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), request.param)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def compare(lock: str, loopback: str, tmp_path: Path, *options: str) -> int:
    path = tmp_path / "lock.txt"
    path.write_text(lock, encoding="utf-8")
    return dev_lock.main([str(path), "--index", loopback, *options])


def test_hashes_of_the_page_pass(loopback: str, tmp_path: Path) -> None:
    assert compare(LOCK, loopback, tmp_path) == 0


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (ALSO, WRONG, f"first-one==1.2: not on the page: {WRONG}"),
        (ALSO, ALSO[:-1] + "0", f"first-one==1.2: not on the page: {ALSO[:-1]}0"),
        ("3.0.post1", "3.0", "second==3.0: the page states no hash for this release"),
        (f"3.0.post1 \\\n    --hash=sha256:{GOOD}", "3.0.post1", "second==3.0.post1: no hash in the lock"),
    ],
    ids=["another release's hash", "one digit", "a release that is not there", "no hash"],
)
def test_what_the_page_does_not_state_is_named(
    before: str, after: str, said: str, loopback: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
) -> None:
    assert compare(LOCK.replace(before, after), loopback, tmp_path) == 1
    assert said in capsys.readouterr().err.splitlines()


def test_mending_writes_the_hashes_of_the_page_and_leaves_the_rest(loopback: str, tmp_path: Path) -> None:
    assert compare(LOCK.replace(f"{ALSO}\n", f"{WRONG}\n"), loopback, tmp_path, "--mend") == 0
    assert (tmp_path / "lock.txt").read_text(encoding="utf-8") == LOCK


def test_what_cannot_be_mended_stays_wrong(loopback: str, tmp_path: Path) -> None:
    assert compare(LOCK.replace("3.0.post1", "3.0"), loopback, tmp_path, "--mend") == 1


def test_an_empty_lock_does_not_pass(loopback: str, tmp_path: Path) -> None:
    assert compare("# nothing\n", loopback, tmp_path) == 1


def test_a_line_that_is_no_pin_is_refused() -> None:
    with pytest.raises(ValueError, match=r"line 2 is no sha256-hashed pin: name>=1"):
        dev_lock.parse_lock("# comment\nname>=1\n")


def test_the_committed_lock_is_wholly_hashed_and_names_no_place() -> None:
    text = (Path(__file__).parent / "requirements-dev.txt").read_text(encoding="utf-8")
    pins = dev_lock.parse_lock(text)
    assert all(pin.hashes for pin in pins)
    assert {"click", "httpx", "pip", "pip-tools", "pytest", "ruff", "mypy"} <= {pin.name for pin in pins}
    assert "://" not in text
    assert not [line for line in text.splitlines() if line.startswith("-")]


@pytest.mark.recorded
def test_the_committed_lock_is_what_the_index_states(index: ReplayServer) -> None:
    path = Path(__file__).parent / "requirements-dev.txt"
    assert dev_lock.main([str(path), "--index", index.url]) == 0
