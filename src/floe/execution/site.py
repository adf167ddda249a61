"""A project on its platform: folder, floe.yaml, platform.yaml, environment."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from floe.settings import ProjectPaths
from floe.spec import PlatformSpec, ProjectSpec
from floe.spec.loader import UnknownProfileError
from floe.spec.platform import Compute, Connection
from floe.spec.secrets import SecretRef, reveal


@dataclass(frozen=True)
class Site:
    """A project on a platform: what formats, engines and the Spark server need."""

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
        """Return a compute profile; default: the project's."""
        return _pick("compute", profile or self.spec.compute, self.platform.compute)

    def connection(self, name: str) -> Connection:
        """Return a database connection of the platform."""
        return _pick("connection", name, self.platform.connections)

    def reveal(self, value: str | SecretRef) -> str:
        """Resolve a secret for immediate use; return plain text unchanged."""
        return reveal(value, self.environ, Path(self.platform.secrets.folder))

    def storage_root(self, profile: str | None = None) -> str:
        """Return the folder or URL that relative locations are resolved against."""
        root = _pick("storage", profile or self.spec.storage, self.platform.storage).root
        return root if "://" in root else str((self.root / root).resolve())

    def read_text(self, text: str) -> str:
        """Return SQL text; if it names a .sql file, that file's content."""
        from floe.spec.sql import read_sql

        return read_sql(self.root, text)


Profile = TypeVar("Profile")


def _pick(kind: str, name: str, known: Mapping[str, Profile]) -> Profile:
    if name not in known:
        raise UnknownProfileError(kind, name, sorted(known))
    return known[name]
