"""Lines for the log of a long session."""

from __future__ import annotations

import pytest


def say(config: pytest.Config, line: str) -> None:
    """A line that is seen at once, whatever is captured."""
    report, capture = (config.pluginmanager.get_plugin(name) for name in ("terminalreporter", "capturemanager"))
    if report is not None and capture is not None:
        with capture.global_and_fixture_disabled():
            report.ensure_newline()
            report.write_line(line)
