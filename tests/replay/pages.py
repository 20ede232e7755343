"""Project pages as the loopback index serves them: JSON or HTML, file addresses on loopback, edits applied."""

from __future__ import annotations

import copy
import hashlib
import html
import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from tests.replay.store import RecordedFile

Page = dict[str, Any]
Edit = Callable[[Page], None]

JSON_TYPE = "application/vnd.pypi.simple.v1+json"
HTML_TYPE = "application/vnd.pypi.simple.v1+html"


def served_page(
    content: Mapping[str, Any], *, project: str, base: str, files: Mapping[str, RecordedFile],
    advertised: Callable[[RecordedFile], dict[str, str] | bool], edits: tuple[Edit, ...],
) -> Page:
    """The page's content with loopback addresses and this server's word on metadata."""
    page: Page = {**content, "files": [dict(row) for row in content["files"]]}
    for row in page["files"]:
        row["url"] = f"{base}/files/{project}/{quote(row['filename'])}"
        row.pop("core-metadata", None)
        row.pop("data-dist-info-metadata", None)
        if row["filename"].endswith(".whl") and (said := advertised(files[row["filename"]])):
            row["core-metadata"] = said
    if edits:
        page = copy.deepcopy(page)
        for edit in edits:
            edit(page)
    return page


def render_json(page: Page) -> bytes:
    return json.dumps(page, separators=(",", ":")).encode()


def render_html(page: Page) -> bytes:
    """The page in PEP 503 form, with the attributes of PEP 592 and 714."""
    lines = ["<!DOCTYPE html>", '<html><head><meta name="pypi:repository-version" content="1.1">',
             f"<title>Links for {html.escape(page['name'])}</title></head><body>"]
    lines += [_anchor(row) for row in page["files"]]
    return "\n".join([*lines, "</body></html>", ""]).encode()


def _anchor(row: Mapping[str, Any]) -> str:
    sha256 = row.get("hashes", {}).get("sha256")
    attributes = {"href": row["url"] + (f"#sha256={sha256}" if sha256 else "")}
    if row.get("requires-python"):
        attributes["data-requires-python"] = row["requires-python"]
    if row.get("yanked"):
        attributes["data-yanked"] = row["yanked"] if isinstance(row["yanked"], str) else ""
    said = row.get("core-metadata")
    if said:
        attributes["data-core-metadata"] = "true" if said is True else f"sha256={said['sha256']}"
    text = " ".join(f'{name}="{html.escape(value)}"' for name, value in attributes.items())
    return f"<a {text}>{html.escape(row['filename'])}</a><br>"


def local_page(project: str, files: Mapping[str, bytes]) -> Page:
    """A page for files that are made here, not recorded."""
    rows = [
        {"filename": name, "url": "", "hashes": {"sha256": hashlib.sha256(body).hexdigest()}, "size": len(body),
         "upload-time": "2024-01-01T00:00:00.000000Z", "yanked": False}
        for name, body in files.items()
    ]
    return {"meta": {"api-version": "1.1"}, "name": project, "files": rows,
            "versions": sorted({name.split("-")[1].removesuffix(".tar.gz") for name in files})}


def without(fits: Callable[[str], bool]) -> Edit:
    """An edit that drops the files whose names fit."""
    def edit(page: Page) -> None:
        page["files"] = [row for row in page["files"] if not fits(row["filename"])]
    return edit


def altered(fits: Callable[[str], bool], **fields: Any) -> Edit:
    """An edit that sets fields (`_` for `-`) of the files whose names fit."""
    def edit(page: Page) -> None:
        for row in page["files"]:
            if fits(row["filename"]):
                row.update({name.replace("_", "-"): value for name, value in fields.items()})
    return edit
