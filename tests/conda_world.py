"""Conda prefixes that py-rattler installs from a channel on loopback, and what `conda activate` does in each shell."""

from __future__ import annotations

import asyncio
import functools
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.apply_faults.world import tree_of
from tests.conda_packages import JIT, SITE, SUBDIR, Package, jit, python_package, stack_packages, toolkit_package
from tests.judges.command import Run, run
from tests.shell_world import Shell

NAME = "LD_LIBRARY_PATH"
# A prefix for each way in which packages lay out libraries; the second also has another package's scripts
LAYOUTS = {"lib": "it's a \"lib\" of $HOME!", "wheels": "two  words"}
OWN = {"lib": "lib/stackfix", "wheels": f"{SITE}/nvidia/nvjitlink/lib"}
MORE = {"lib": (), "wheels": ("toolkit",)}
BAD = "HOSTILE"             # stands for the folder that breaks them
PATH = "/usr/bin:/bin"      # Debian's zsh puts one of its own in the place of /bin:/usr/bin
FOUND = ("import faketorch\nwith open('/proc/self/maps') as maps:\n"
         f"    print(*sorted({{line.split(maxsplit=5)[5].strip() for line in maps if {JIT!r} in line}}))")
Tree = dict[str, tuple[object, ...]]


# --- a channel, and prefixes from it ---


class _Files(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        pass


@contextmanager
def served(folder: Path, packages: Sequence[Package]) -> Iterator[str]:
    """The address of a channel that holds the packages."""
    from rattler.index import index_fs

    for each in {SUBDIR, "noarch"}:
        (folder / each).mkdir(parents=True)
    for package in packages:
        (folder / SUBDIR / package.file).write_bytes(package.archive())
    asyncio.run(index_fs(folder, write_zst=False, write_shards=False))
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Files, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def install(prefix: Path, channel: str, specs: Sequence[str], cache: Path) -> Path:
    """A prefix with these packages and what they need, solved and linked by rattler."""
    import rattler

    async def made() -> None:
        gateway = rattler.Gateway(cache_dir=cache / "repodata")
        records = await rattler.solve([rattler.Channel(channel)], list(specs), gateway=gateway)
        await rattler.install(records, target_prefix=prefix, cache_dir=cache / "pkgs", show_progress=False)

    asyncio.run(made())
    return prefix


# --- conda activate ---


@dataclass(kw_only=True)
class Conda:
    """Lines that `conda activate` and `conda deactivate` have one shell read, as conda's activate.py orders them.

    Deactivation reads its scripts from the last name to the first; `turned`: from the first to the last, as rattler.
    """

    shell: Shell
    turned: bool = False
    active: list[tuple[Path, bool]] = field(default_factory=list)

    def activate(self, prefix: Path, *, stacked: bool = False) -> list[str]:
        """`stacked`: the one that is active stays so."""
        lines = self.sourced(self.active[-1][0], "deactivate") if self.active and not stacked else []
        self.active.append((prefix, stacked))
        return [*lines, *self.told(), *self.sourced(prefix, "activate")]

    def deactivate(self) -> list[str]:
        prefix, stacked = self.active.pop()
        lines = [*self.sourced(prefix, "deactivate"), *self.told()]
        return [*lines, *self.sourced(self.active[-1][0], "activate")] if self.active and not stacked else lines

    def told(self) -> list[str]:
        """The variables."""
        folders = [f"{prefix}/bin" for prefix, _ in reversed(self.active[-1:])]
        values = {"PATH": ":".join([*folders, PATH]), "CONDA_SHLVL": str(len(self.active))}
        if not self.active:
            return [*self.exported(values), self.shell.clear.format("CONDA_PREFIX")]
        return self.exported({**values, "CONDA_PREFIX": str(self.active[-1][0])})

    def exported(self, values: Mapping[str, str]) -> list[str]:
        order = {".fish": "set -gx {} {}", ".csh": "setenv {} {}"}.get(self.shell.suffix, "export {}={}")
        return [order.format(name, self.literal(value)) for name, value in values.items()]

    def sourced(self, prefix: Path, phase: str) -> list[str]:
        found = sorted((prefix / "etc" / "conda" / f"{phase}.d").glob(f"*{self.shell.suffix}"),
                       reverse=phase == "deactivate" and not self.turned)
        return [self.shell.source.format(self.literal(str(each))) for each in found]

    def literal(self, text: str) -> str:
        """The text as one word of the shell."""
        if self.shell.suffix == ".fish":
            return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
        quoted = "'" + text.replace("'", "'\"'\"'") + "'"
        return quoted.replace("!", "\\!") if self.shell.suffix == ".csh" else quoted


# --- the environments of the tests ---


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A channel, prefixes from it, and a folder that breaks them."""

    url: str
    folder: Path

    @property
    def hostile(self) -> Path:
        return self.folder / "cuda 12.0" / "lib64"

    @property
    def cache(self) -> Path:
        return self.folder / "cache"

    def make(self, name: str, *specs: str) -> Path:
        """A prefix; of one that is there the packages that it lacks."""
        return install(self.folder / "envs" / name, self.url, specs, self.cache)

    def repaired(self) -> dict[str, Path]:
        """A prefix of each layout, with activation scripts of ours."""
        made = {each: self.make(LAYOUTS[each], f"faketorch ==1.0 {each}", *MORE[each]) for each in LAYOUTS}
        for each in made.values():
            self.repair(each)
        return made

    def repair(self, prefix: Path) -> Run:
        """A repair by activation; its load must have worked."""
        done = self.say("repair", prefix, "--method", "activate", "--yes", "--json")
        steps = {each["name"]: each for each in done.json["verified"]["steps"]}
        assert steps["load faketorch"]["verdict"] == "works", steps
        return done

    def say(self, command: str, prefix: Path, *words: str, env: Mapping[str, str] | None = None) -> Run:
        """A command line of ours, in a shell that names the bad folder."""
        environ = {"PATH": os.defpath, "HOME": str(self.folder), "NO_COLOR": "1",
                   "STACKFIX_CACHE_DIR": str(self.folder / "stackfix"), NAME: str(self.hostile), **(env or {})}
        return run([sys.executable, "-m", "stackfix", command, "--prefix", prefix, *words], cwd=self.folder,
                   env=environ)

    def packages(self) -> Tree:
        """rattler's cache: bytes and modes of all packages in it. Links come and go."""
        return {path: (*facts[:3], *facts[4:]) for path, facts in tree_of(self.cache / "pkgs").items()}

    def begun(self, before: str | None = None) -> dict[str, str]:
        """The variables of a shell in which conda was set up and nothing is active."""
        environ = {"PATH": PATH, "CONDA_SHLVL": "0"}
        return environ if before is None else {**environ, NAME: before.replace(BAD, str(self.hostile))}


@contextmanager
def opened(folder: Path) -> Iterator[World]:
    """A world in an empty folder."""
    world = World(url="", folder=folder)
    world.hostile.mkdir(parents=True)
    jit(world.hostile, 0)
    scripts = {f"etc/conda/{phase}.d/scripts.sh": b"# none\n" for phase in ("activate", "deactivate")}
    packages = [python_package(folder / "python"), toolkit_package(world.hostile),
                Package(name="scripts", version="1", files=scripts),
                *(each for layout in LAYOUTS for each in stack_packages(folder / layout, layout))]
    with served(folder / "channel", packages) as url:
        yield World(url=url, folder=folder)


def load(prefix: Path, environ: Mapping[str, str]) -> str:
    """The nvJitLink that the package maps in a child with these variables, or the error of its import."""
    done = subprocess.run([str(prefix / "bin" / "python"), "-B", "-c", FOUND], env=dict(environ), check=False,
                          capture_output=True, text=True, timeout=60)
    return done.stdout.strip() if done.returncode == 0 else done.stderr.splitlines()[-1]
