"""A project in a folder, and versions of its datasets."""

from datetime import date
from pathlib import Path
from typing import Any

from floe.execution.formats.contract import StoredVersion
from floe.execution.site import Site
from floe.settings import ProjectPaths
from floe.spec import DatasetSpec, PlatformSpec, ProjectSpec

DAY = date(2026, 9, 1)


def make_site(root: Path, platform: dict[str, Any] | None = None, **environ: str) -> Site:
    return Site(
        paths=ProjectPaths(root),
        spec=ProjectSpec(name="test"),
        platform=PlatformSpec.model_validate(platform or {}),
        environ=environ,
    )


def make_version(
    dataset: str = "credit.positions",
    tag: str = "2026-09-01.1",
    *,
    partition: str | None = None,
    path: str | None = None,
    details: dict[str, Any] | None = None,
    day: date = DAY,
    **spec: Any,
) -> StoredVersion:
    return StoredVersion(
        dataset=dataset,
        spec=DatasetSpec.model_validate(spec),
        tag=tag,
        business_date=day,
        partition=partition,
        path=path,
        details=details or {},
        run_id="run-1",
    )


def put(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path
