"""What no single builder can see: two makers of one asset, and assets that follow each other."""

from collections import Counter
from collections.abc import Iterable

from dagster import AssetKey, AssetsDefinition

from floe.errors import FloeError
from floe.orchestration.loading import Loading
from floe.orchestration.parts import Parts
from floe.orchestration.selection import name_of
from floe.spec.rules.cycles import find_cycles


class TwoMakersError(FloeError):
    """An asset is made in two places, of which Dagster could run only one."""

    def __init__(self, asset: str, makers: Iterable[str]) -> None:
        super().__init__(
            f"The asset '{asset}' is made twice: by {' and by '.join(makers)}. "
            "Keep one of them, or give the other a name of its own."
        )


class CircularAssetsError(FloeError):
    """Assets follow each other in a circle, so that none of them can be the first."""

    def __init__(self, circles: list[list[str]]) -> None:
        told = "; ".join(" → ".join([*circle, circle[0]]) for circle in circles)
        super().__init__(
            f"Assets depend on each other in a circle: {told}. Remove one of the dependencies."
        )


def check_assets(_: Loading, parts: Parts) -> Parts:
    """Refuse assets that cannot stand beside each other; otherwise change nothing."""
    functions = [one for one in parts.assets if isinstance(one, AssetsDefinition)]
    made = Counter(key for one in functions for key in one.keys)
    for key, times in made.items():
        if times > 1:
            raise TwoMakersError(name_of(key), _makers(parts, functions, key))
    circles = find_cycles(_upstream(parts))
    if circles:
        raise CircularAssetsError(circles)
    return parts


def _makers(parts: Parts, functions: Iterable[AssetsDefinition], key: AssetKey) -> list[str]:
    """Say who makes an asset. What is written in Python comes first, and has a file."""
    names = [f"'{one.node_def.name}'" for one in functions if key in one.keys]
    return [parts.origins[key], *names[1:]] if key in parts.origins else names


def _upstream(parts: Parts) -> dict[str, set[str]]:
    """Return what each asset follows; itself on an earlier date closes no circle."""
    return {
        name_of(key): {name_of(dep.asset_key) for dep in spec.deps if dep.asset_key != key}
        for key, spec in parts.specs.items()
    }
