"""The bundled conda records alone, as a decision sees them: nothing is asked of any channel."""

from __future__ import annotations

from pathlib import Path

from stackfix.matrix.load import load_matrix
from stackfix.matrix.toml_files import matrix_directory
from stackfix.sources.conda_channels import CondaChannels, open_channels


def bundled_channels(cache_dir: Path, *names: str) -> CondaChannels:
    """`--offline`, with these channels for the user's."""
    return open_channels(
        names, bases=load_matrix().sources.conda_channels, environ={}, home=cache_dir, cache_dir=cache_dir,
        offline=True, snapshot_dir=matrix_directory() / "conda")
