"""Import modules of the user's project, and of no other project that this process has seen."""

import sys
from importlib import import_module, invalidate_caches
from pathlib import Path
from pkgutil import iter_modules
from traceback import extract_tb
from types import ModuleType
from typing import TYPE_CHECKING

from floe.errors import FloeError
from floe.execution.site import Site
from floe.spec.document import shown
from floe.spec.nearby import nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from traceback import FrameSummary

_roots: list[Path] = []
"""The folders of the projects that this process has imported from."""


class ModuleNotLoadedError(FloeError):
    """A module of the project cannot be imported."""

    def __init__(self, module: str, reason: str, hint: str = "") -> None:
        self.reason = reason
        self.hint = hint
        super().__init__(f"The module '{module}' cannot be loaded: {reason}. {hint}".rstrip())


def load_module(site: Site, module: str) -> ModuleType:
    """Import a module, looking first in the project's folder."""
    _settle(site.root)
    invalidate_caches()
    _forget(_strangers(site.root, module))
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise ModuleNotLoadedError(module, _where(site.root, error)) from error
        reason = f"there is no module '{error.name}' in {site.root} or on Python's path"
        raise ModuleNotLoadedError(module, reason, _near(site.root, error.name)) from error
    except (Exception, SystemExit) as error:
        raise ModuleNotLoadedError(module, _where(site.root, error)) from error


def load_package(site: Site, module: str) -> list[ModuleType]:
    """Import a module, and when it is a package all that is in it, in the order of names."""
    top = load_module(site, module)
    path = getattr(top, "__path__", None)
    if path is None:
        return [top]
    return [top, *(load_module(site, name) for name in sorted(_names_below(path, module)))]


def _names_below(folders: "Iterable[str]", module: str) -> "Iterator[str]":
    """Yield the modules of a package, at any depth; a folder needs no __init__.py for that."""
    for entry in {entry.stem: entry for one in folders for entry in Path(one).iterdir()}.values():
        name = f"{module}.{entry.stem}"
        # A script does its work when it is imported, and the package itself is there already.
        if not entry.stem.isidentifier() or entry.stem in ("__main__", "__init__", "__pycache__"):
            continue
        if entry.is_dir():
            below = list(_names_below([str(entry)], name))
            yield from [name, *below] if below or (entry / "__init__.py").is_file() else []
        elif entry.suffix == ".py":
            yield name


def _settle(root: Path) -> None:
    """Put the project's folder first on Python's path, and take other projects' away.

    Packages of two projects often have the same name, `assets` above all. What another project
    has imported is forgotten, so that an import inside a module finds this project's own.
    """
    others = [other for other in _roots if other != root]
    for other in others:
        _forget(name for name in _tops() if _is_at(sys.modules[name], other, name))
        while str(other) in sys.path:
            sys.path.remove(str(other))
    _roots[:] = [root]
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))


def _tops() -> list[str]:
    return [name for name in sys.modules if "." not in name]


def _strangers(root: Path, module: str) -> list[str]:
    """Return the package of a module's name when something else than the project's is loaded."""
    top = module.partition(".")[0]
    own = any(path.exists() for path in (root / top, root / f"{top}.py"))
    loaded = sys.modules.get(top)
    if loaded is None or not own or _is_at(loaded, root, top):
        return []
    sys.path.remove(str(root))
    sys.path.insert(0, str(root))
    return [top]


def _forget(tops: "Iterable[str]") -> None:
    for top in list(tops):
        for name in [name for name in sys.modules if f"{name}.".startswith(f"{top}.")]:
            del sys.modules[name]


def _is_at(module: ModuleType, root: Path, top: str) -> bool:
    """Tell whether a top-level module is the one in a folder."""
    file = getattr(module, "__file__", None)
    places = [file] if file else list(getattr(module, "__path__", []))
    own = (root / top, root / f"{top}.py")
    return any(Path(place).is_relative_to(path) for place in places for path in own)


def _near(root: Path, module: str) -> str:
    """Say which module of the project was probably meant."""
    package, _, _ = module.rpartition(".")
    folder = root.joinpath(*package.split(".")) if package else root
    prefix = f"{package}." if package else ""
    near = nearest(module, [found.name for found in iter_modules([str(folder)], prefix)])
    return f"Did you mean '{near}'?" if near else ""


def _where(root: Path, error: BaseException) -> str:
    """Say what went wrong in the user's file, and at which line.

    An error may come out of a library that the file calls: then the line of the call helps.
    """
    what = f"{type(error).__name__}: {error}"
    if isinstance(error, SyntaxError) and error.filename:
        return f"{shown(root, Path(error.filename))}:{error.lineno}: {error.msg}"
    frames = [frame for frame in extract_tb(error.__traceback__) if "importlib" not in frame[0]]
    own = [frame for frame in frames if _is_users(root, frame)]
    last = next(reversed(own or frames[1:]), None)
    return f"{shown(root, Path(last.filename))}:{last.lineno}: {what}" if last else what


def _is_users(root: Path, frame: "FrameSummary") -> bool:
    path = Path(frame.filename)
    return path.is_relative_to(root) and "site-packages" not in path.relative_to(root).parts
