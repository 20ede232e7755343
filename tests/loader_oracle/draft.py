"""A graph that is still being drawn."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from tests.loader_oracle.graph import Graph, Library, Link, Step

FOLDERS = ("d0", "d1", "d2", "d3", "d 4")


@dataclass(slots=True)
class Draft:
    """A graph that is still being drawn. Names are sonames; a soname may have several files."""

    rng: random.Random
    seed: int
    names: list[str] = field(default_factory=list)
    libraries: list[Library] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    cached: list[str] = field(default_factory=list)
    program: Library = field(default_factory=lambda: Library(path="bin/program"))
    library_path: str | None = None
    preload: str | None = None
    bind_now: bool = True
    cwd: str = "cwd"

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def pick(self) -> int:
        """Place of one library."""
        return self.rng.randrange(len(self.libraries))

    def change(self, place: int, **fields: object) -> None:
        self.libraries[place] = replace(self.libraries[place], **fields)     # type: ignore[arg-type]

    def done(self) -> Graph:
        return Graph(
            seed=self.seed, program=self.program, libraries=tuple(self.libraries), links=tuple(self.links),
            steps=tuple(self.steps), cached=tuple(self.cached), library_path=self.library_path, preload=self.preload,
            bind_now=self.bind_now, cwd=self.cwd,
        )


def draw_path(draft: Draft) -> str:
    folders = draft.rng.sample(FOLDERS, draft.rng.randint(1, 2))
    forms = ("@/{}", "$ORIGIN/../{}", "${{ORIGIN}}/../{}/", "@/cwd/../{}")
    return ":".join(draft.rng.choice(forms).format(folder) for folder in folders)
