"""A project in a folder, for tests with their own Spark server."""

from pathlib import Path

from floe.execution.site import Site
from floe.settings import ProjectPaths
from floe.spec import PlatformSpec, ProjectSpec
from floe.spec.platform import Compute


def make_site(root: Path, platform: PlatformSpec | None = None) -> Site:
    """A project in a folder. Its server needs little memory: tests run several at once."""
    (root / "floe.yaml").write_text("name: test\n")
    small = PlatformSpec(compute={"default": Compute(memory="1g")})
    return Site(paths=ProjectPaths(root), spec=ProjectSpec(name="test"), platform=platform or small)
