"""Where a project runs: its folder, what it declares, its platform, and what that leads to."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from floe.settings import ProjectPaths
from floe.spec import PlatformSpec, ProjectSpec
from floe.spec.platform import Compute, Connection
from floe.spec.profiles import UnknownProfileError
from floe.spec.secrets import SecretRef


@dataclass(frozen=True)
class Site:
    """A project on a platform. Formats, engines and the Spark server all start from it."""

    paths: ProjectPaths
    spec: ProjectSpec
    platform: PlatformSpec
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    @property
    def root(self) -> Path:
        return self.paths.root

    @property
    def state_dir(self) -> Path:
        return self.paths.state_dir

    def compute(self, profile: str | None = None) -> Compute:
        """Return a compute profile; by default the project's."""
        return _pick("compute", profile or self.spec.compute, self.platform.compute)

    def connection(self, name: str) -> Connection:
        """Return a database of the platform."""
        return _pick("connection", name, self.platform.connections)

    def reveal(self, value: str | SecretRef) -> str:
        """Fetch a secret for immediate use; plain text is itself."""
        if isinstance(value, str):
            return value
        return value.resolve(self.environ, Path(self.platform.secrets.folder))

    def storage_root(self, profile: str | None = None) -> str:
        """Return what relative locations start from: a folder, or a URL."""
        root = _pick("storage", profile or self.spec.storage, self.platform.storage).root
        return root if "://" in root else str((self.root / root).resolve())

    def read_text(self, text: str) -> str:
        """Return SQL as written, or what the file holds that it names."""
        from floe.spec.sql_files import names_file

        return (self.root / text).read_text(encoding="utf-8") if names_file(text) else text


Profile = TypeVar("Profile")


def _pick(kind: str, name: str, known: Mapping[str, Profile]) -> Profile:
    if name not in known:
        raise UnknownProfileError(kind, name, sorted(known))
    return known[name]
