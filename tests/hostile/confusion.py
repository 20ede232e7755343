"""Dependency confusion: a name on an index that is not its own."""

from __future__ import annotations

from tests.cli_world import ASKED, World, wheels
from tests.hostile.measured import Ended
from tests.hostile.records import Locked, Refused, Scenario
from tests.hostile.replicas import release
from tests.hostile.stage import NEWER, WHEEL, Loopback, Stage, sha256
from tests.replay.wheels import make_wheel
from tests.sources_servers import Reply, path_of, status

INTERNAL = "internal-9.0-py3-none-any.whl"
FLASH = "flash_attn-2.5.8-cp311-cp311-linux_x86_64.whl"
EVIL_BYTES = make_wheel(FLASH)
EVIL_FLASH = sha256(EVIL_BYTES)
OURS = "internal-1.0-py3-none-any.whl"


def additional(stage: Stage, projects: dict[str, dict[str, bytes]]) -> Loopback:
    """An additional index with these projects."""
    world = World(projects=projects)
    server = stage.open(world.reply)
    world.url = f"{server.url}/simple"
    stage.words += ["--extra-index-url", world.url]
    stage.others.append(server)
    return server


def one(filename: str, **metadata: object) -> dict[str, bytes]:
    requires = metadata.get("requires", ())
    assert isinstance(requires, tuple)
    return {filename: make_wheel(filename, requires=requires)}


def private_name(stage: Stage) -> None:
    """Somebody published our private name on the default index, with a higher version."""
    additional(stage, {"internal": one(OURS)})
    stage.has("internal", INTERNAL)
    stage.words += ["--with", "internal"]


def private_name_needed(stage: Stage) -> None:
    """The same where another package asks for it."""
    additional(stage, {"internal": one(OURS)})
    stage.has("internal", INTERNAL)
    stage.has("demo", WHEEL, requires=("internal",))


def never_the_default(stage: Stage, ended: Ended) -> None:
    assert "/simple/internal/" not in [path_of(head) for head in stage.server.heads]


def locked_out(answer: Reply) -> Scenario:
    """The private index does not answer: the name is not looked for elsewhere."""
    def does(stage: Stage) -> None:
        server = additional(stage, {})
        server.reply = lambda head: answer if "/internal/" in path_of(head) else status("404 Not Found")
        stage.has("internal", INTERNAL)
        stage.words += ["--with", "internal"]
    name = "silence" if answer == b"" else str(answer).split(" ")[1]
    return Scenario(name=f"a private index that says {name}", does=does, comes=Refused(says=("internal",)),
                    also=never_the_default)


def family(stage: Stage) -> None:
    """An additional index has a torch of its own making, newer than all others."""
    name = "torch-2.3.9-cp311-cp311-manylinux1_x86_64.whl"
    additional(stage, {"torch": one(name)})


def family_alike(stage: Stage) -> None:
    """The same version and file name as the real one, other bytes."""
    name = next(name for name in wheels()["torch"] if "cp311-cp311" in name)
    additional(stage, {"torch": one(name)})


def library(stage: Stage) -> None:
    """An additional index has a cuDNN of the version that torch pins."""
    additional(stage, {"nvidia-cudnn-cu12": one("nvidia_cudnn_cu12-8.9.2.26-py3-none-any.whl")})


def library_newer(stage: Stage) -> None:
    additional(stage, {"nvidia-cudnn-cu12": one("nvidia_cudnn_cu12-99.0-py3-none-any.whl")})


def both(stage: Stage) -> None:
    """Both indexes have demo, the default one a higher version."""
    additional(stage, {"demo": one(WHEEL)})
    stage.has("demo", NEWER)


def flash_attn(stage: Stage) -> None:
    """A flash-attn wheel on an additional index, while the release source knows the real one."""
    additional(stage, {"flash-attn": {FLASH: EVIL_BYTES}})
    stage.asked = (*ASKED[:-1], "--flash-attn", "2.5.8")
    release(stage)


CONFUSION = (
    Scenario(name="confusion: a private name on the default index", does=private_name,
             comes=Locked(pins=("demo==1.0", "internal==1.0")), absent=("9.0",), also=never_the_default),
    Scenario(name="confusion: a private name that is needed", does=private_name_needed,
             comes=Locked(pins=("demo==1.0", "internal==1.0")), absent=("9.0",), also=never_the_default),
    *(locked_out(answer) for answer in (
        status("401 Unauthorized"), status("403 Forbidden"), status("500 Oops"), status("503 Later"),
        status("302 Found"), b"")),
    Scenario(name="confusion: a higher version on the default index", does=both, comes=Locked(), absent=("2.0",)),
    Scenario(name="confusion: a torch on an additional index", does=family,
             comes=Refused(status=1, says=("torch",))),
    Scenario(name="confusion: a torch like the real one", does=family_alike,
             comes=Locked(says=("torch 2.3.1 comes from the additional index",))),
    Scenario(name="confusion: a cuDNN on an additional index", does=library,
             comes=Locked(says=("nvidia-cudnn-cu12 8.9.2.26 comes from the additional index",))),
    Scenario(name="confusion: another cuDNN there", does=library_newer, comes=Refused(status=1, says=("cudnn",))),
    Scenario(name="confusion: flash-attn on an additional index", does=flash_attn,
             comes=Locked(pins=("demo==1.0",)), absent=(EVIL_FLASH,)),
)
