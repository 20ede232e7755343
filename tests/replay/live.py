"""The live index, asked modestly: by project name, each answer once. Its address is pip's own default."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    from typing_extensions import Self

ACCEPT = "application/vnd.pypi.simple.v1+json"
ATTEMPTS = 4
WHOLE = 200


class LiveIndex:
    """Fills store.Upstream over HTTP."""

    def __init__(self, base: str | None = None) -> None:
        self._base = (base or default_index()).rstrip("/")
        self._client = httpx.Client(timeout=60, follow_redirects=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def page(self, project: str) -> bytes | None:
        answer = self._get(f"{self._base}/{project}/", {"Accept": ACCEPT})
        if answer.status_code == httpx.codes.NOT_FOUND:
            return None
        if not answer.headers.get("content-type", "").startswith(ACCEPT):
            raise RuntimeError(f"the live index answers {project} without PEP 691 JSON")
        return answer.content

    def metadata(self, url: str) -> bytes | None:
        answer = self._get(f"{url}.metadata", {})
        return None if answer.status_code == httpx.codes.NOT_FOUND else answer.content

    def span(self, url: str, start: int, stop: int) -> bytes:
        answer = self._get(url, {"Range": f"bytes={start}-{stop - 1}", "Accept-Encoding": "identity"})
        body = answer.content[start:stop] if answer.status_code == WHOLE else answer.content
        if len(body) != stop - start:
            raise RuntimeError(f"asked {stop - start} bytes of {url}, got {len(body)}")
        return body

    def size(self, url: str) -> int:
        return int(self._client.head(url, headers={"Accept-Encoding": "identity"}).headers["content-length"])

    def _get(self, url: str, headers: dict[str, str]) -> httpx.Response:
        for attempt in range(ATTEMPTS):
            try:
                answer = self._client.get(url, headers=headers)
            except httpx.TransportError:
                if attempt == ATTEMPTS - 1:
                    raise
            else:
                if answer.status_code < httpx.codes.INTERNAL_SERVER_ERROR and answer.status_code != 429:
                    if answer.status_code != httpx.codes.NOT_FOUND:
                        answer.raise_for_status()
                    return answer
            time.sleep(2**attempt)
        answer.raise_for_status()
        return answer


def default_index() -> str:
    """Base address of the index that pip uses when nobody tells it otherwise."""
    from pip._internal.models.index import PyPI

    return str(PyPI.simple_url)
