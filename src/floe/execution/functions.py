"""Load a function of the user's project by its name."""

from collections.abc import Callable
from typing import Any

from floe.errors import FloeError
from floe.execution.modules import ModuleNotLoadedError, load_module
from floe.execution.site import Site
from floe.spec.nearby import nearest


class FunctionNotLoadedError(FloeError):
    """A function that floe.yaml names cannot be loaded."""

    def __init__(self, reference: str, reason: str) -> None:
        super().__init__(f"The function '{reference}' cannot be loaded: {reason}")


def load_function(site: Site, reference: str) -> Callable[..., Any]:
    """Import `module.function` (or module:function), looking first in the project's folder."""
    module_name, _, name = reference.replace(":", ".").rpartition(".")
    try:
        module = load_module(site, module_name)
    except ModuleNotLoadedError as error:
        said = f"{error.reason}. {error.hint}".rstrip()
        raise FunctionNotLoadedError(reference, said) from error
    found = getattr(module, name, None)
    if found is None:
        near = nearest(name, [known for known in vars(module) if not known.startswith("_")])
        hint = f" Did you mean '{near}'?" if near else ""
        raise FunctionNotLoadedError(reference, f"{module.__file__} has no '{name}'.{hint}")
    if not callable(found):
        raise FunctionNotLoadedError(reference, f"'{name}' in {module.__file__} is not a function.")
    function: Callable[..., Any] = found
    return function
