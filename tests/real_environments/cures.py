"""What a repair must make of each broken environment, and how it is judged."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.real_environments import scenarios
from tests.real_environments.asked import check
from tests.real_environments.child import SCRIPT, Told, told_by
from tests.real_environments.judge import judge_healthy
from tests.real_environments.repaired import Answer, Shop, activated, born, unwritable
from tests.real_environments.scenarios import Scenario
from tests.real_environments.trees import Entry, differences, tree_of
from tests.real_environments.workshop import Made

STATE = ".stackfix"
HOOK = r"lib/python3\.11/site-packages/_stackfix_preload_\w+(\.pth|\.py|_loader\.py)"
SCRIPTS = r"bin/(activate(\.csh|\.fish|\.ps1)?|stackfix-deactivate\.csh)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cure:
    """The right plan for one scenario."""

    scenario: Scenario
    kind: str                       # of its actions
    installs: tuple[str, ...] = ()  # patterns of releases "project version", one for each action
    paths: str = ""                 # pattern of what changes, where nothing is installed
    maps: tuple[str, ...]           # relative to the site folder: what a process has mapped afterwards
    imports: tuple[str, ...] = ("torch",)
    opens: tuple[str, ...] = ()     # the same, opened by path in the child: no import maps it
    activation: bool = False        # whether activation would do

    def __str__(self) -> str:
        return self.scenario.name


CUDNN_9 = "nvidia/cudnn/lib/libcudnn.so.9"
CUDNN_8 = "nvidia/cudnn/lib/libcudnn.so.8"
SHADOWED = Cure(
    scenario=scenarios.SHADOWED, kind="preload-hook", paths=HOOK, maps=(scenarios.NVJITLINK_FILE,), activation=True)
LINKED = Cure(
    scenario=scenarios.LINKED, kind="preload-hook", paths=HOOK, maps=(scenarios.NVJITLINK_FILE,), activation=True)
INSTALLED = (
    Cure(scenario=scenarios.TOO_OLD, kind="install", installs=(r"nvidia-nvjitlink-cu12 12\.1\.\d+",),
         maps=(scenarios.NVJITLINK_FILE,)),
    Cure(scenario=scenarios.PART_DELETED, kind="install", installs=(r"nvidia-cudnn-cu12 8\.9\.2\.26",),
         maps=(CUDNN_8, scenarios.CUDNN_PART), opens=(scenarios.CUDNN_PART,)),
    Cure(scenario=scenarios.OTHER_CUDNN, kind="install", installs=(r"nvidia-cudnn-cu12 8\.9\.2\.26",), maps=(CUDNN_8,)),
    Cure(scenario=scenarios.VLLM_FLASH_ATTN, kind="install", installs=(r"vllm-flash-attn 2\.5\.9\.post1",),
         imports=("torch", "vllm_flash_attn"), maps=(CUDNN_8, scenarios.VLLM_FLASH_ATTN.root.path or "")),
    Cure(scenario=scenarios.XFORMERS, kind="install", installs=(r"xformers 0\.0\.27\.post[12]",),
         imports=("torch", "xformers"), maps=("xformers/_C.so", CUDNN_9), opens=("xformers/_C.so",)),
    Cure(scenario=scenarios.HALF_UNINSTALLED, kind="install", installs=(
        r"nvidia-cudnn-cu13 9\.20\.0\.48", r"nvidia-cusparselt-cu13 0\.8\.1", r"nvidia-nccl-cu13 2\.29\.7"),
        maps=(CUDNN_9, "nvidia/nccl/lib/libnccl.so.2", "nvidia/cusparselt/lib/libcusparseLt.so.0")),
)
CURES = (SHADOWED, LINKED, *INSTALLED)


def judge(cure: Cure, shop: Shop) -> str:
    """Break it; plan on a read-only tree, repair, look, undo; the same with activation. What was done, in words."""
    scenario, workshop = cure.scenario, shop.workshop
    made = workshop.make(*scenario.base, python=scenario.python)
    variables = scenario.broken(workshop, made)
    failed = born(made, workshop.folder, scenario.imports, variables)
    assert re.search(scenario.error, failed.error or ""), failed.error
    before = tree_of(made.prefix, workshop.cache)
    planned = shop.plan(made, **variables)
    found = differences(before, tree_of(made.prefix, workshop.cache))
    assert not found, found[:9]
    judge_plan(cure, planned)
    judge_run(cure, shop, made, variables)

    done = shop.repair(made, **variables)
    judge_repaired(planned, done)
    after = tree_of(made.prefix, workshop.cache)
    judge_changes(cure, planned, made, before, after)
    judge_kept(shop, before, after)
    judge_child(cure, shop, made, variables)
    judge_healthy(check(workshop, made, **variables))
    again = shop.plan(made, **variables)
    assert (again.run.status, again.steps) == (0, ()), again.told()
    judge_undone(shop, made, before)
    judge_activation(cure, shop, made, variables, before)
    return "; ".join(f"{each['kind']} of {len(each['changes'])}: {each['summary']}" for each in planned.steps)


def judge_plan(cure: Cure, planned: Answer) -> None:
    """The smallest means, no more paths than it needs, nothing left; all is told."""
    assert planned.run.status == 1, planned.run
    assert planned.left == (), planned.told()
    assert planned.advice == (), planned.told()
    assert set(planned.kinds) == {cure.kind}, planned.told()
    if cure.installs:
        assert all(re.search(pattern, " ".join(each["summary"] for each in planned.steps))
                   for pattern in cure.installs), planned.told()
        assert len(planned.steps) == len(cure.installs), planned.told()
    else:
        assert all(re.fullmatch(cure.paths, path) for path in planned.paths), planned.told()
    assert cure.scenario.root.code in {code for each in planned.steps for code in each["cures"]}, planned.told()
    assert planned.said["applied"] is None, planned.told()


def judge_run(cure: Cure, shop: Shop, made: Made, variables: Mapping[str, str]) -> None:
    """One command, on the tree that cannot be written: cured where variables can do it, started in any case."""
    with unwritable(made.prefix) as before:
        done = shop.stackfix("run", "--prefix", made.prefix, "--", "python", "-B", "-c", SCRIPT, *cure.scenario.imports,
                             before=before, **variables)
    told = told_by(done)
    assert (told.error is None) == (cure.activation or not cure.scenario.error), told.error
    assert (cure.scenario.root.code in done.stderr) != cure.activation, done
    if cure.activation:
        assert {str(made.site.resolve() / each) for each in cure.maps} <= told.mapped, sorted(told.mapped)


def judge_repaired(planned: Answer, done: Answer) -> None:
    """The plan that was shown is the one that was made, and it was proven."""
    assert done.run.status == 0, done.told()
    assert done.said["plan"] == planned.said["plan"], (planned.told(), done.told())
    assert not done.said["applied"]["taken_back"], done.told()
    verified = done.said["verified"]
    assert (verified["static"], verified["surprises"]) == ("clean", []), done.told()
    assert verified["load"] == "works", done.told()
    assert verified["kernel"] in {"works", "cannot-tell"}, done.told()


def judge_changes(cure: Cure, planned: Answer, made: Made, before: Mapping[Path, Entry],
                  after: Mapping[Path, Entry]) -> None:
    """Exactly the paths of the plan; of an installation only files of the releases that it names."""
    changed = {str(path.relative_to(made.prefix)) for path in {*before, *after} if path.is_relative_to(made.prefix)
               and unlike(before.get(path), after.get(path))}
    changed = {path for path in changed if path.partition("/")[0] != STATE}
    if not cure.installs:
        assert changed == planned.paths, (changed, planned.told())
        return
    projects = {re.split(r" ", pattern)[0] for pattern in cure.installs}
    theirs = {str(path.relative_to(made.prefix)) for path in owned(made, projects)}
    assert changed, planned.told()
    strange = {path for path in changed if path not in theirs and not below(path, planned.paths)}
    assert not strange, strange


def unlike(before: Entry | None, after: Entry | None) -> bool:
    """Whether a name is another file; that a folder has got one more is no change of it, nor a link elsewhere."""
    if before is None or after is None:
        return (before or after) is not None and not is_folder(before or after)
    return not is_folder(before) and (before.inode, before.content, before.mode) != (
        after.inode, after.content, after.mode)


def is_folder(entry: Entry | None) -> bool:
    return entry is not None and entry.kind == 0o040000


def owned(made: Made, projects: set[str]) -> Iterator[Path]:
    """What the RECORDs of projects list, those that were set aside too."""
    kept = (made.prefix / STATE).glob("*/kept/*/lib/python3*/site-packages")
    for site in (made.site, *kept):
        for record in site.glob("*.dist-info/RECORD"):
            if record.parent.name.partition("-")[0].replace("_", "-").lower() in projects:
                for line in record.read_text(encoding="utf-8").splitlines():
                    yield made.site / line.rpartition(",")[0].rpartition(",")[0].strip('"')


def below(path: str, folders: frozenset[str]) -> bool:
    """Whether a path is one of these or in one of them."""
    return any(path == each or path.startswith(f"{each}/") for each in folders)


def judge_kept(shop: Shop, before: Mapping[Path, Entry], after: Mapping[Path, Entry]) -> None:
    """No file of uv's cache is otherwise than before; new ones may have come, and links to them."""
    for path, entry in before.items():
        if path.is_relative_to(shop.workshop.cache) and not is_folder(entry):
            assert path in after, path
            assert not unlike(entry, after[path]), path


def judge_child(cure: Cure, shop: Shop, made: Made, variables: Mapping[str, str]) -> Told:
    """A process with these variables alone imports all, and what it has mapped are the wheels' libraries."""
    told = born(made, shop.workshop.folder, cure.imports, variables, [made.site / each for each in cure.opens])
    assert told.error is None, told.error
    site = made.site.resolve()
    assert {str(site / each) for each in cure.maps} <= told.mapped, sorted(told.mapped)
    strange = {path for path in told.mapped if is_of_wheel(path) and not Path(path).is_relative_to(site)}
    assert not strange, strange
    return told


def is_of_wheel(path: str) -> bool:
    """Whether a library is one of those that wheels bring."""
    return re.match(r"lib(nv|cu|nccl|torch|c10)", Path(path).name) is not None


def judge_undone(shop: Shop, made: Made, before: Mapping[Path, Entry]) -> None:
    """Bytes, modes, links, link counts, inodes and times are those of before the repair; its own folder is gone."""
    shop.undo(made)
    after = tree_of(made.prefix, shop.workshop.cache)
    ours = {path: entry for path, entry in before.items() if path.is_relative_to(made.prefix) or not is_folder(entry)}
    came = {path for path in after if path not in before and path.is_relative_to(made.prefix)}
    assert not came, came
    found = differences(ours, {path: after[path] for path in ours if path in after})
    assert not found, found[:9]


def judge_activation(cure: Cure, shop: Shop, made: Made, variables: Mapping[str, str],
                     before: Mapping[Path, Entry]) -> None:
    """The scripts that the user knows, and what a shell that sources them starts; else why they would not do."""
    planned = shop.plan(made, "--method", "activate", **variables)
    assert planned.run.status == 1, planned.run
    if not cure.activation:
        assert planned.steps == (), planned.told()
        assert cure.scenario.root.code in planned.left, planned.told()
        assert any(each["command"] and cure.scenario.root.code in each["cures"] for each in planned.advice), \
            planned.told()
        projects = {project for each in planned.said["plan"]["left"] for project in each["by_install"]}
        assert {pattern.partition(" ")[0] for pattern in cure.installs} <= projects, planned.told()
        done = shop.repair(made, "--method", "activate", **variables)
        assert (done.run.status, done.said["applied"]) == (1, None), done.told()
        found = differences(before, {**before, **tree_of(made.prefix)})
        assert not found, found[:9]
        return
    assert planned.kinds == ("write-activation",), planned.told()
    assert planned.paths
    assert all(re.fullmatch(SCRIPTS, path) for path in planned.paths), planned.told()
    done = shop.repair(made, "--method", "activate", **variables)
    judge_repaired(planned, done)
    after = tree_of(made.prefix, shop.workshop.cache)
    judge_changes(cure, planned, made, before, after)
    judge_kept(shop, before, after)
    inside = activated(made, shop.workshop.folder, variables)
    assert dict(done.said["plan"]["variables"]).items() <= inside.items()
    judge_child(cure, shop, made, inside)
    judge_healthy(check(shop.workshop, made, **inside))
    judge_undone(shop, made, before)
