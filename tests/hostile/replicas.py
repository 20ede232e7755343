"""Copies of the torch index and of the release source that mean harm."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from typing import Any

from tests.cli_world import ASKED
from tests.hostile.answers import PIECE, bomb
from tests.hostile.measured import Ended
from tests.hostile.records import Locked, Refused, Scenario
from tests.hostile.redirects import LOGIN, SECRET
from tests.hostile.stage import Loopback, Stage, dripping, endless, html_page, redirect, sha256
from tests.replay.torch_index import rows, variant_requires
from tests.replay.wheels import make_wheel
from tests.sources_servers import Reply, ok, path_of, status

EVIL = "evil.invalid"
TORCH = "torch-2.3.1+cu118-cp311-cp311-linux_x86_64.whl"
LINK = TORCH.replace("+", "%2B")
FLASH = "flash_attn-2.5.8+cu122torch2.3cxx11abiFALSE-cp311-cp311-linux_x86_64.whl"
API = "/releases/tags/v2.5.8"
A = "a" * 64


@cache
def torch_hash() -> str:
    """What the matrix knows of the file."""
    found = next(row.sha256 for row in rows("cu118") if row.file == TORCH)
    assert found is not None
    return found


@cache
def torch_needs() -> tuple[str, ...]:
    return ("filelock", "typing-extensions", "sympy", "networkx", "jinja2", "fsspec",
            *variant_requires("2.3.1", "cu118", "linux-64"))


def torch_index(stage: Stage, page: Reply | Callable[[str], Reply] | None = None, **answers: Reply) -> Loopback:
    """A copy of the torch index that has torch for CUDA 11.8, and this page in place of torch's own.

    `answers`: of other projects on it.
    """
    for line in torch_needs():
        found = re.match(r"([a-z0-9-]+)==([0-9.]+)", line)
        if found is not None:
            stage.has(found[1], f"{found[1].replace('-', '_')}-{found[2]}-py3-none-any.whl")
    metadata = "".join(f"Requires-Dist: {line}\n" for line in torch_needs())
    text = f"Metadata-Version: 2.1\nName: torch\nVersion: 2.3.1+cu118\n{metadata}"

    def reply(head: str) -> Reply:
        path = path_of(head)
        if path.endswith("/torch/"):
            shown = sound() if page is None else page
            return shown(head) if callable(shown) else shown
        if path.endswith(".metadata"):
            return ok(text.encode(), kind="text/plain")
        return answers.get(path.rstrip("/").rpartition("/")[2].replace("-", "_"), status("404 Not Found"))
    server = stage.open(reply)
    stage.others.append(server)
    stage.words += ["--cuda", "11.8", "--torch-index", f"{server.url}/whl"]
    return server


def link(href: str | None = None, digest: str | None = None, more: str = "") -> str:
    return (f'<a href="{href or f"/whl/cu118/{LINK}"}#sha256={digest or torch_hash()}"'
            f' data-dist-info-metadata="true"{more}>x</a>')


def sound() -> bytes:
    return html_page(link())


def made(_: object) -> None:
    """Nothing comes back: the scenario is set."""


def torch(name: str, page: Reply | Callable[[str], Reply] | None, comes: Refused | Locked, *, hurry: float = 1,
          absent: tuple[str, ...] = (EVIL, A), peak: int = 250 << 20) -> Scenario:
    """What the page of torch is on the copy."""
    return Scenario(name=f"torch index: {name}", does=lambda stage: made(torch_index(stage, page)), comes=comes,
                    hurry=hurry, absent=absent, peak=peak)


def beside(stage: Stage) -> None:
    """The copy has other projects as well, newer than the default index's: they are none of its business."""
    page = {name: html_page(f'<a href="{name}-99.0-py3-none-any.whl#sha256={A}">x</a>')
            for name in ("demo", "filelock", "sympy", "jinja2", "numpy", "markupsafe", "requests")}
    torch_index(stage, None, **page)


def asked_for_torch_alone(stage: Stage, ended: Ended) -> None:
    """Of the copy nothing was asked that is not torch's."""
    pages = {path_of(head) for head in stage.others[-1].heads if path_of(head).endswith("/")}
    assert pages <= {f"/whl/cu118/{name}/" for name in ("torch", "triton", "torchvision", "torchaudio", "xformers")}
    assert "/whl/cu118/torch/" in pages


def with_login(stage: Stage) -> None:
    """The address of the copy holds a login; what is written is the official address."""
    server = torch_index(stage)
    stage.words[-1] = f"{server.url}/whl".replace("://", f"://{LOGIN}@")
    stage.secrets.append(SECRET)


def release(stage: Stage, change: Callable[[dict[str, Any], str], object] | None = None,
            answer: Reply | None = None) -> Loopback:
    """A release API that has one wheel, changed; or that answers so."""
    content = make_wheel(FLASH, requires=("torch", "einops"))
    for name in ("einops-0.8.0", "packaging-24.0", "ninja-1.11.1"):
        stage.has(name.partition("-")[0], f"{name}-py3-none-any.whl")

    def reply(head: str) -> Reply:
        if path_of(head) == API:
            if answer is not None:
                return answer
            asset = {"name": FLASH, "size": len(content), "state": "uploaded", "updated_at": "2024-05-01T00:00:00Z",
                     "digest": f"sha256:{sha256(content)}", "browser_download_url": f"{server.url}/v2.5.8/{FLASH}"}
            if change is not None:
                change(asset, server.url)
            return ok(json.dumps({"tag_name": "v2.5.8", "assets": [asset]}).encode(), kind="application/json")
        return ok(content, kind="application/zip") if path_of(head).endswith(".whl") else status("404 Not Found")
    server = stage.open(reply)
    stage.others.append(server)
    stage.words += ["--flash-attn-source", server.url]
    return server


def flash(name: str, change: Callable[[dict[str, Any], str], object] | None, comes: Refused | Locked,
          answer: Reply | None = None, *, hurry: float = 1, secrets: tuple[str, ...] = ()) -> Scenario:
    """What the release source says where flash-attn 2.5.8 is asked for."""
    def does(stage: Stage) -> None:
        stage.asked = (*ASKED[:-1], "--flash-attn", "2.5.8")
        stage.secrets += secrets
        release(stage, change, answer)
    return Scenario(name=f"releases: {name}", does=does, comes=comes, hurry=hurry, absent=(EVIL, A, *secrets))


def dripped(stage: Stage) -> None:
    stage.asked = (*ASKED[:-1], "--flash-attn", "2.5.8")
    release(stage, answer=dripping(stage, b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n"))


def sets(**changes: Any) -> Callable[[dict[str, Any], str], object]:
    return lambda asset, url: asset.update(changes)


NO, BAD = Refused(status=1, says=("flash-attn",)), Refused(status=1, says=("flash-attn", "release source"))
LOCKED = Locked()
REPLICAS = (
    torch("sound", None, LOCKED),
    torch("another hash than the matrix knows", html_page(link(digest=A)),
          Refused(says=(TORCH, A, "the matrix"))),
    torch("a hash that is none", html_page(link(digest="zz")), Refused(says=("torch",))),
    torch("two hashes", html_page(link(), link(digest=A)), Refused(says=("torch", "different hashes"))),
    torch("files elsewhere", html_page(link(f"https://{EVIL}/whl/cu118/{LINK}")), LOCKED),
    torch("a file of this disk", html_page(link(f"file:///whl/cu118/{LINK}")), Refused(says=("torch", "address"))),
    torch("files with a login", html_page(link(f"https://me:{A}@{EVIL}/whl/cu118/{LINK}")), LOCKED),
    torch("a newer torch of its own", html_page(link(), f'<a href="/whl/cu118/torch-2.3.9%2Bcu118-cp311-cp311-linux_'
                                                f'x86_64.whl#sha256={A}">x</a>'), LOCKED),
    torch("a redirect to a file", redirect("file:///etc/passwd"), Refused(says=("torch", "no http(s)"))),
    torch("2 GB", lambda _: endless(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n", PIECE),
          Refused(says=("torch", "more"))),
    torch("a bomb", ok(bomb(2 << 30), kind="text/html", headers=("Content-Encoding: gzip",)),
          Refused(says=("torch", "more"))),
    torch("a login page", html_page("<form>"), Refused(says=("torch", "login"))),
    torch("no HTTP", b"\x16\x03\x01\r\n\r\n", LOCKED), torch("503", status("503 Later"), LOCKED),
    torch("a path that climbs", html_page(link(f"/whl/cu118/../../../{LINK}")), LOCKED),
    Scenario(name="torch index: other projects", does=beside, comes=LOCKED, absent=(A, "99.0"),
             also=asked_for_torch_alone),
    Scenario(name="torch index: with a login", does=with_login, comes=LOCKED),
    flash("sound", None, LOCKED),
    flash("another wheel than it says", sets(digest="sha256:" + "b" * 64), LOCKED),     # an installer will refuse it
    flash("a digest that is none", sets(digest="sha256:zz"), BAD),
    flash("a file of this disk", sets(browser_download_url=f"file:///etc/{FLASH}"), BAD),
    flash("a script", sets(browser_download_url="javascript:1"), BAD),
    flash("no address", sets(browser_download_url=None), BAD),
    flash("a name that climbs", sets(name="../../flash_attn-2.5.8-cp311-cp311-linux_x86_64.whl"), BAD),
    flash("a name that paints", sets(name="flash_attn-2.5.8\x1b[31m-cp311-cp311-linux_x86_64.whl"), BAD),
    flash("a name of a megabyte", sets(name="f" * 1_000_000 + ".whl"), BAD),
    flash("another name", sets(name="evil-1.0-cp311-cp311-linux_x86_64.whl"), NO),
    flash("a size that is smaller", sets(digest=None, size=10), NO),
    flash("a size of none", sets(digest=None, size=-1), LOCKED),
    flash("an address that is signed", lambda asset, url: asset.update(
        browser_download_url=f"{asset['browser_download_url']}?sig=5ign4ture-of-it"), LOCKED,
          secrets=("5ign4ture-of-it",)),
    flash("no list", None, BAD, ok(b'{"assets": {}}', kind="application/json")),
    flash("a deep list", None, BAD, ok(b"[" * 200_000, kind="application/json")),
    flash("a bomb", None, BAD, ok(bomb(2 << 30), kind="application/json", headers=("Content-Encoding: gzip",))),
    flash("a redirect to a file", None, BAD, redirect("file:///etc/passwd")),
    flash("a used-up limit", None, BAD, status("403 Forbidden", "X-RateLimit-Remaining: 0")),
    Scenario(name="releases: a drip", does=dripped, comes=BAD, hurry=300),
)
