"""Which of the platform's profiles a project uses, read without the rest of floe.yaml.

Looking around in the catalog must work while floe.yaml is being worked on.
"""

from collections.abc import Mapping

from floe.errors import FloeError
from floe.settings import ProjectPaths
from floe.spec.nearby import nearest
from floe.spec.platform import CatalogDatabase, PlatformSpec
from floe.spec.variables import substitute
from floe.spec.yaml_source import read_yaml

DEFAULT = "default"


class UnknownProfileError(FloeError):
    """A project names a profile that its platform lacks."""

    def __init__(self, kind: str, name: str, known: list[str]) -> None:
        near = nearest(name, known)
        hint = f"Did you mean '{near}'?" if near else f"The platform has: {', '.join(known)}."
        super().__init__(f"floe.yaml: {kind}: the platform has no profile '{name}'. {hint}")


def load_catalog_database(
    paths: ProjectPaths, platform: PlatformSpec, environ: Mapping[str, str]
) -> CatalogDatabase:
    """Return the catalog's database, by the profile that floe.yaml names."""
    tree = read_yaml(paths.floe_yaml, paths.floe_yaml.name).tree
    written = tree.get("catalog") if isinstance(tree, dict) else None
    name = substitute(str(written or DEFAULT), environ.get).text
    if name not in platform.catalog:
        raise UnknownProfileError("catalog", name, sorted(platform.catalog))
    return platform.catalog[name]
