"""Load modules and functions of the user's project, isolated from other projects."""

import sys
from collections.abc import Callable
from importlib import import_module, invalidate_caches
from pathlib import Path
from pkgutil import iter_modules
from traceback import extract_tb
from types import ModuleType
from typing import TYPE_CHECKING, Any

from floe.errors import FloeError
from floe.execution.site import Site
from floe.spec.document import display_path
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
    _activate_project(site.root)
    invalidate_caches()
    _forget(_foreign_packages(site.root, module))
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise ModuleNotLoadedError(module, _describe_error(site.root, error)) from error
        reason = f"there is no module '{error.name}' in {site.root} or on the Python path"
        raise ModuleNotLoadedError(
            module, reason, _suggest_module(site.root, error.name)
        ) from error
    except (Exception, SystemExit) as error:
        raise ModuleNotLoadedError(module, _describe_error(site.root, error)) from error


def load_package(site: Site, module: str) -> list[ModuleType]:
    """Import a module; of a package also all its modules, sorted by name."""
    top = load_module(site, module)
    path = getattr(top, "__path__", None)
    if path is None:
        return [top]
    return [top, *(load_module(site, name) for name in sorted(_names_below(path, module)))]


def _names_below(folders: "Iterable[str]", module: str) -> "Iterator[str]":
    """Yield the modules of a package at any depth; folders need no __init__.py."""
    for entry in {
        entry.stem: entry for folder in folders for entry in Path(folder).iterdir()
    }.values():
        name = f"{module}.{entry.stem}"
        # Importing __main__ would run the script; the package itself is already imported.
        if not entry.stem.isidentifier() or entry.stem in ("__main__", "__init__", "__pycache__"):
            continue
        if entry.is_dir():
            below = list(_names_below([str(entry)], name))
            yield from [name, *below] if below or (entry / "__init__.py").is_file() else []
        elif entry.suffix == ".py":
            yield name


def _activate_project(root: Path) -> None:
    """Put the project's folder first on the Python path; remove other projects.

    Packages of two projects often have the same name, such as `assets`. So modules imported from
    another project are forgotten, and imports find this project's own.
    """
    others = [other for other in _roots if other != root]
    for other in others:
        _forget(name for name in _top_level_names() if _is_at(sys.modules[name], other, name))
        while str(other) in sys.path:
            sys.path.remove(str(other))
    _roots[:] = [root]
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))


def _top_level_names() -> list[str]:
    return [name for name in sys.modules if "." not in name]


def _foreign_packages(root: Path, module: str) -> list[str]:
    """Return a module's top-level package if a foreign package of that name is loaded."""
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
    """Tell whether a top-level module was loaded from a folder."""
    file = getattr(module, "__file__", None)
    paths = [file] if file else list(getattr(module, "__path__", []))
    own = (root / top, root / f"{top}.py")
    return any(Path(path).is_relative_to(folder) for path in paths for folder in own)


def _suggest_module(root: Path, module: str) -> str:
    """Suggest a module of the project with a similar name."""
    package, _, _ = module.rpartition(".")
    folder = root.joinpath(*package.split(".")) if package else root
    prefix = f"{package}." if package else ""
    near = nearest(
        module, [module_info.name for module_info in iter_modules([str(folder)], prefix)]
    )
    return f"Did you mean '{near}'?" if near else ""


def _describe_error(root: Path, error: BaseException) -> str:
    """Describe an error with the file and line of the user's code.

    For an error raised in a library, this is the line that called it.
    """
    message = f"{type(error).__name__}: {error}"
    if isinstance(error, SyntaxError) and error.filename:
        return f"{display_path(root, Path(error.filename))}:{error.lineno}: {error.msg}"
    frames = [frame for frame in extract_tb(error.__traceback__) if "importlib" not in frame[0]]
    own = [frame for frame in frames if _is_users(root, frame)]
    last = next(reversed(own or frames[1:]), None)
    if last is None:
        return message
    return f"{display_path(root, Path(last.filename))}:{last.lineno}: {message}"


def _is_users(root: Path, frame: "FrameSummary") -> bool:
    path = Path(frame.filename)
    return path.is_relative_to(root) and "site-packages" not in path.relative_to(root).parts


class FunctionNotLoadedError(FloeError):
    """A function named in floe.yaml cannot be loaded."""

    def __init__(self, reference: str, reason: str) -> None:
        super().__init__(f"The function '{reference}' cannot be loaded: {reason}")


def load_function(site: Site, reference: str) -> Callable[..., Any]:
    """Import `module.function` or `module:function`, first from the project's folder."""
    module_name, _, name = reference.replace(":", ".").rpartition(".")
    try:
        module = load_module(site, module_name)
    except ModuleNotLoadedError as error:
        reason = f"{error.reason}. {error.hint}".rstrip()
        raise FunctionNotLoadedError(reference, reason) from error
    attribute = getattr(module, name, None)
    if attribute is None:
        near = nearest(name, [known for known in vars(module) if not known.startswith("_")])
        hint = f" Did you mean '{near}'?" if near else ""
        raise FunctionNotLoadedError(reference, f"{module.__file__} has no '{name}'.{hint}")
    if not callable(attribute):
        raise FunctionNotLoadedError(reference, f"'{name}' in {module.__file__} is not a function.")
    function: Callable[..., Any] = attribute
    return function
