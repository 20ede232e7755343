"""No login of an address is shown, and nothing else is taken away."""

from __future__ import annotations

import json

import pytest

from stackfix.report.json import render_json
from stackfix.report.redact import redacted


@pytest.mark.parametrize(("text", "shown"), [
    ("idna @ https://user:s3cret@h/x.whl", "idna @ https://h/x.whl"),
    ("'https://user:s3cr@et@h'", "'https://h'"),
    ("https:/user:s3cret@h/r.in: no such file", "https:/h/r.in: no such file"),
    ("git+ssh://git:s3cret@h/x and https://a:s3cret@g/y", "git+ssh://h/x and https://g/y"),
    ("idna @ https://h/x@1.whl", "idna @ https://h/x@1.whl"),
    ("mail me@h: a/b", "mail me@h: a/b"),
])
def test_a_login_goes_and_the_rest_stays(text: str, shown: str) -> None:
    assert redacted(text) == shown
    assert json.loads(render_json({"message": text}))["message"] == shown
