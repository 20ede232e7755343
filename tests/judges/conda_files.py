"""All judges of the conda files of one lock together: what each says, "" for yes, as tests.judges.table shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.judges import conda_lock, conda_rattler, conda_records


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The files of one Python, and what the channels have. Files that were not written are left out."""

    lock: Path                                          # conda-lock.yml
    explicit: Mapping[str, Path] = field(default_factory=dict)      # by platform
    environments: Mapping[str, Path] = field(default_factory=dict)
    pixi: Path | None = None
    channels: Mapping[str, tuple[str, Path]]            # name -> (base address, folder of subdirs), by priority
    virtual: Mapping[str, Sequence[tuple[str, str, str]]]           # platform -> (name, version, build)
    priority: str = "strict"


def verdicts(judged: Judged, scratch: Path) -> dict[str, str]:
    """Judge -> its complaints, one a line."""
    repodata = conda_records.Repodata(dict(judged.channels.values()))
    said = {
        "conda-lock": conda_lock.complaints(judged.lock, scratch, explicit=dict(judged.explicit),
                                            environments=dict(judged.environments)),
        "records": [*conda_records.conda_lock_complaints(judged.lock, repodata),
                    *(line for path in judged.explicit.values()
                      for line in conda_records.explicit_complaints(path, repodata)),
                    *(conda_records.pixi_complaints(judged.pixi, repodata) if judged.pixi else ())],
        "re-solve": [line for platform, path in judged.environments.items()
                     for line in conda_rattler.solve_complaints(
                         conda_rattler.pins_of(path), judged.channels, platform=platform,
                         virtual=judged.virtual[platform], priority=judged.priority)],
        "rattler reads": [*conda_rattler.conda_lock_complaints(judged.lock),
                          *(conda_rattler.pixi_complaints(judged.pixi, scratch) if judged.pixi else ())],
    }
    return {judge: "\n".join(lines) for judge, lines in said.items()}
