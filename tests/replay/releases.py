"""A release API on loopback with stand-in wheels: what a release host says of flash-attn, without its gigabytes."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tests.replay.http import Answer, HttpServer, Request
from tests.replay.wheels import make_wheel

if TYPE_CHECKING:
    from typing_extensions import Self

REQUIRES = ("torch", "einops")      # what most flash-attn 2 wheels declare


@dataclass(kw_only=True)
class LoopbackReleases:
    """Fills http.Site. `assets`: version -> file names, each served as a stand-in wheel of that name."""

    assets: Mapping[str, tuple[str, ...]]
    requires: Mapping[str, tuple[str, ...]] = field(default_factory=dict)   # version -> Requires-Dist, else REQUIRES
    digest: bool = True                 # the API states each asset's sha256
    status: int | None = None           # every request is answered by this: 503, 403
    delay: float = 0.0
    base: str = ""
    requests: list[tuple[str, str, str]] = field(default_factory=list)

    def ready(self, request: Request) -> Answer | None:
        self.requests.append((request.method, request.path, request.headers.get("range", "")))
        if self.status is not None:
            return Answer(status=self.status)
        return None

    def fetch(self, request: Request) -> Answer:
        asked = re.search(r"/releases/tags/v([^/]+)$", request.path)
        if asked:
            return self._release(asked[1])
        asked = re.search(r"/v([^/]+)/([^/]+\.whl)$", request.path)
        if asked and asked[2] in self.assets.get(asked[1], ()):
            headers = (("Content-Type", "application/octet-stream"), ("Accept-Ranges", "bytes"))
            return Answer(headers=headers, body=self._wheel(asked[1], asked[2]))
        return Answer(status=404)

    def _release(self, version: str) -> Answer:
        if version not in self.assets:
            return Answer(status=404, headers=(("Content-Type", "application/json"),), body=b'{"message":"Not Found"}')
        assets = [self._asset(version, file) for file in self.assets[version]]
        body = json.dumps({"tag_name": f"v{version}", "name": f"v{version}", "assets": assets}).encode()
        return Answer(headers=(("Content-Type", "application/json; charset=utf-8"),), body=body)

    def _wheel(self, version: str, file: str) -> bytes:
        return stand_in(file, self.requires.get(version, REQUIRES))

    def _asset(self, version: str, file: str) -> dict[str, Any]:
        wheel = self._wheel(version, file)
        asset: dict[str, Any] = {
            "name": file, "size": len(wheel), "content_type": "application/octet-stream", "state": "uploaded",
            "updated_at": "2024-05-01T00:00:00Z", "digest": None,
            "browser_download_url": f"{self.base}/releases/download/v{version}/{quote(file)}",
        }
        if self.digest:
            asset["digest"] = f"sha256:{hashlib.sha256(wheel).hexdigest()}"
        return asset


class ReleaseServer:
    """The release API while the block runs. `url` is its base: + `/releases/tags/v2.5.8`."""

    def __init__(self, assets: Mapping[str, tuple[str, ...]], **how: Any) -> None:
        self.releases = LoopbackReleases(assets=assets, **how)
        self._http = HttpServer(self.releases)

    def __enter__(self) -> Self:
        self._http.__enter__()
        self.releases.base = self._http.url
        return self

    def __exit__(self, *_: object) -> None:
        self._http.__exit__()

    @property
    def url(self) -> str:
        return self._http.url

    @property
    def requests(self) -> list[tuple[str, str, str]]:
        return self.releases.requests


def stand_in(file: str, requires: tuple[str, ...] = REQUIRES) -> bytes:
    """A small wheel under the asset's name; its metadata's version has no local part, as the real ones' has not."""
    return make_wheel(file, requires=requires)
