"""The texts of the preload hook: modules that stand alone, so that they work on when stackfix is gone.

Names in angle brackets are filled in. Two modules, for the first is parsed at every start of an interpreter, each line
in some 30 microseconds, and the second only when a package is imported that it is there for. Neither is imported, for
that would leave compiled files behind when the hook is taken back; and where they cannot be written, it would take a
millisecond more, for compile() makes all classes of the ast module first. exec() of a text does not.
"""

from __future__ import annotations

# One line, which the site module executes where it has named the folder `sitedir`; in a venv twice. Silent where the
# module is gone.
PATH_LINE = (
    "import sys; '<module>' in [type(each).__module__ for each in sys.meta_path] or "
    'exec("try:\\n'
    " with open(sitedir + '/<module>.py', encoding='utf-8') as file:\\n"
    "  names = {'__name__': '<module>', '__file__': file.name}\\n"
    "  exec(file.read(), names)\\n"
    " names['start']()\\n"
    "except Exception:\\n"
    ' pass")\n'
)

# PEP 829: one entry point a line, UTF-8; the site module calls it without arguments.
START_LINE = "<module>:start\n"

STARTER = '''\
"""Loads libraries of this environment by path, before the packages that need them would find others.

Written by `stackfix repair`; it needs no stackfix. `stackfix undo` takes it back, and so does deleting all files here
whose names begin with <module>. STACKFIX_PRELOAD=0 switches it off for one process.
"""
import sys


class Finder:
    waiting = {<packages>}
    names = {"__name__": "<module>_loader", "__file__": __file__[:-3] + "_loader.py"}

    def find_spec(self, name, path=None, target=None):
        if name in self.waiting:
            try:
                with open(self.names["__file__"], encoding="utf-8") as file:
                    exec(file.read(), self.names)
                return self.names["find"](self, name, path, target)
            except Exception:
                pass


def start():
    if __name__ not in [type(each).__module__ for each in sys.meta_path]:
        sys.meta_path.insert(0, Finder())
'''

LOADER = '''\
"""What <module>.py calls when a package is imported that needs libraries of this environment."""
import os
import sys

SITE = os.path.dirname(os.path.abspath(__file__))
# Package -> libraries in the order in which they are loaded, relative to this folder. What lies outside of this
# environment, in its base or in a folder that a .pth file names, is loaded from there.
LIBRARIES = {
<libraries>}
# Packages that are not in this folder: editable installations, a base.
ELSEWHERE = {
<elsewhere>}


def find(finder, name, path, target):
    """What the finders behind this one find, with a loader that loads the libraries first, or None."""
    if os.environ.get("STACKFIX_PRELOAD") == "0":
        return None
    try:
        for other in sys.meta_path[sys.meta_path.index(finder) + 1:]:
            spec = other.find_spec(name, path, target)
            if spec is not None:
                return hooked(finder, spec) if is_ours(spec) else None
    except Exception:
        pass        # the ordinary import, which goes on behind the finder, meets it again
    return None


def is_ours(spec):
    """Whether the package is the one that was repaired: one from elsewhere has libraries of its own."""
    folder = os.path.realpath(os.path.dirname(spec.origin))
    home = os.path.realpath(ELSEWHERE.get(spec.name, SITE))
    return (folder + os.sep).startswith(home.rstrip(os.sep) + os.sep)


def hooked(finder, spec):
    spec.loader = Loader(finder, spec.name, spec.loader)
    return spec


def load(finder, name):
    """Once for each package. What cannot be loaded is left to the package itself."""
    if name not in finder.waiting:
        return
    finder.waiting.discard(name)
    try:
        import ctypes
        for path in LIBRARIES[name]:
            try:
                ctypes.CDLL(os.path.join(SITE, path), ctypes.RTLD_LOCAL)
            except OSError:
                pass
        # A new list, for somebody may be walking the old one; and not while another thread may be changing it.
        if not finder.waiting and not sys.modules["_thread"]._count():
            sys.meta_path = [each for each in sys.meta_path if each is not finder]
    except Exception:
        pass


class Loader:
    """The package's own loader in all that can be asked of it, until the package is created or executed."""

    __slots__ = ("_create", "_execute", "_finder", "_loader", "_name")

    def __init__(self, finder, name, loader):
        put = object.__setattr__
        put(self, "_finder", finder)
        put(self, "_name", name)
        put(self, "_loader", loader)
        put(self, "_create", loader.create_module)
        put(self, "_execute", loader.exec_module)

    def create_module(self, spec):
        # The import system reads spec.loader again to execute the module. From here on it is the package's own: no
        # frame of ours is in a traceback, or counted by a warning. An extension module is loaded when it is created.
        own = spec.loader is self
        if own:
            spec.loader = self._loader
        if own or spec.origin.endswith(".so"):
            load(self._finder, self._name)
        return self._create(spec)

    def exec_module(self, module):
        # Reached where another hook has wrapped this loader, or where the module is executed by hand.
        spec = getattr(module, "__spec__", None)
        if getattr(spec, "loader", None) is self:
            spec.loader = self._loader
        if getattr(module, "__loader__", None) is self:
            module.__loader__ = self._loader
        load(self._finder, self._name)
        return self._execute(module)

    @property
    def __class__(self):
        return type(self._loader)

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def __setattr__(self, name, value):
        setattr(self._loader, name, value)

    def __eq__(self, other):
        return self._loader == other

    def __hash__(self):
        return hash(self._loader)

    def __repr__(self):
        return repr(self._loader)

    def __reduce_ex__(self, protocol):
        return self._loader.__reduce_ex__(protocol)
'''
