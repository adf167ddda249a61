"""Load a function of the user's project by its name."""

import sys
from collections.abc import Callable
from importlib import import_module, invalidate_caches
from pathlib import Path
from traceback import extract_tb
from types import ModuleType
from typing import Any

from floe.errors import FloeError
from floe.execution.site import Site
from floe.spec.nearby import nearest


class FunctionNotLoadedError(FloeError):
    """A function that floe.yaml names cannot be loaded."""

    def __init__(self, reference: str, reason: str) -> None:
        super().__init__(f"The function '{reference}' cannot be loaded: {reason}")


def load_function(site: Site, reference: str) -> Callable[..., Any]:
    """Import `module.function` (or module:function), looking first in the project's folder."""
    module_name, _, name = reference.replace(":", ".").rpartition(".")
    module = _import(site, reference, module_name)
    found = getattr(module, name, None)
    if found is None:
        near = nearest(name, [known for known in vars(module) if not known.startswith("_")])
        hint = f" Did you mean '{near}'?" if near else ""
        raise FunctionNotLoadedError(reference, f"{module.__file__} has no '{name}'.{hint}")
    if not callable(found):
        raise FunctionNotLoadedError(reference, f"'{name}' in {module.__file__} is not a function.")
    function: Callable[..., Any] = found
    return function


def _import(site: Site, reference: str, module: str) -> ModuleType:
    root = str(site.root)
    if root not in sys.path:
        sys.path.insert(0, root)
    invalidate_caches()
    _forget_strangers(site.root, module)
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise FunctionNotLoadedError(reference, _where(error)) from error
        reason = f"there is no module '{error.name}' in {root} or on Python's path."
        raise FunctionNotLoadedError(reference, reason) from error
    except Exception as error:
        raise FunctionNotLoadedError(reference, _where(error)) from error


def _forget_strangers(root: Path, module: str) -> None:
    """Forget a package of the same name that another project in this process had loaded."""
    top = module.partition(".")[0]
    loaded = sys.modules.get(top)
    own = next((path for path in (root / top, root / f"{top}.py") if path.exists()), None)
    if loaded is None or own is None or _is_at(loaded, own):
        return
    for name in [name for name in sys.modules if f"{name}.".startswith(f"{top}.")]:
        del sys.modules[name]
    sys.path.remove(str(root))
    sys.path.insert(0, str(root))


def _is_at(module: ModuleType, path: Path) -> bool:
    places = [module.__file__] if module.__file__ else list(getattr(module, "__path__", []))
    return any(Path(place).is_relative_to(path) for place in places)


def _where(error: Exception) -> str:
    """Say what went wrong in the user's file, and at which line."""
    what = f"{type(error).__name__}: {error}"
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}: {error.msg}"
    frames = [frame for frame in extract_tb(error.__traceback__) if "importlib" not in frame[0]]
    last = frames[-1] if frames else None
    return f"{last.filename}:{last.lineno}: {what}" if last else what
