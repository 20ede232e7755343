"""The preload hook in a folder of the user's own, for an environment in which nothing may be written: as commands.

Python reads .pth files in site folders alone. What it starts from PYTHONPATH is a sitecustomize module: this one starts
the hook, in the one environment that it is for, and then the sitecustomize that it stands before.
"""

from __future__ import annotations

import ast
import hashlib
import posixpath
from collections.abc import Mapping
from typing import Any

from stackfix.plan.hook import filled, lines
from stackfix.plan.hook_text import LOADER, STARTER
from stackfix.plan.relink_paths import check_text

END = "END_OF_FILE"
HEAD = '''\
"""Loads libraries of one environment by path, before the packages that need them would find others.

It needs no stackfix. To take it back, delete this folder, and take it out of PYTHONPATH. STACKFIX_PRELOAD=0 switches it
off for one process.
"""
import os
'''
TAIL = '''

def go_on():
    """Starts the sitecustomize that this one stands before."""
    from importlib import machinery, util
    here = os.path.realpath(__file__)
    others = [each for each in sys.path if os.path.realpath(os.path.join(each, "sitecustomize.py")) != here]
    spec = machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        sys.modules["sitecustomize"] = util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules["sitecustomize"])


if os.path.realpath(sys.prefix) == os.path.realpath(<elsewhere>):
    start()
go_on()
'''
COMMANDS = '''\
folder="$HOME/.local/share/stackfix/preload-{name}"
mkdir -p "$folder"
cat > "$folder/sitecustomize.py" <<'{end}'
{starter}{end}
cat > "$folder/sitecustomize_loader.py" <<'{end}'
{loader}{end}
export PYTHONPATH="$folder${{PYTHONPATH:+:$PYTHONPATH}}"'''


def folder_commands(prefix: str, site: str, loader: str) -> str | None:
    """Commands for sh, bash or zsh that do what the hook would; None where `loader` is no text of one.

    site: where the hook would lie, absolute
    loader: the text of its second module
    """
    libraries, elsewhere = table(loader, "LIBRARIES"), table(loader, "ELSEWHERE")
    if not libraries:
        return None
    check_text(prefix)
    absolute = {name: [posixpath.join(site, path) for path in paths] for name, paths in libraries.items()}
    fields = {
        "module": "sitecustomize", "packages": ", ".join(map(ascii, absolute)),
        "libraries": "".join(f"    {name!a}: (\n{lines(paths)}    ),\n" for name, paths in absolute.items()),
        "elsewhere": "".join(f"    {name!a}: {elsewhere.get(name, site)!a},\n" for name in absolute),
    }
    body = STARTER[STARTER.index("import sys"):]
    starter = filled(HEAD + body, fields) + filled(TAIL, {"elsewhere": ascii(prefix)})
    text = filled(LOADER, fields)
    name = hashlib.sha256((starter + text).encode()).hexdigest()[:8]
    return COMMANDS.format(name=name, end=END, starter=starter, loader=text)


def table(text: str, name: str) -> Mapping[str, Any]:
    """One of the tables of a hook that we have just made."""
    found = next((each.value for each in ast.parse(text).body if isinstance(each, ast.Assign)
                  and [getattr(target, "id", None) for target in each.targets] == [name]), None)
    value = ast.literal_eval(found) if found is not None else {}
    return value if isinstance(value, dict) else {}
