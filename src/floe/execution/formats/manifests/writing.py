"""Seal what was written: trailer, manifest and marker, the one that says "complete" last."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from floe.execution.formats.checksums import file_checksum
from floe.execution.formats.contract import VersionPlace
from floe.execution.formats.manifests.control import render_control
from floe.execution.formats.manifests.finding import MANIFEST, manifest_file
from floe.execution.formats.manifests.json_manifest import render_json
from floe.execution.formats.manifests.promise import Promise, PromisedFile
from floe.execution.formats.manifests.reading import Reading
from floe.execution.formats.manifests.trailer import content_checksum, render_trailer
from floe.execution.formats.storage import data_files, put_file, sync_tree
from floe.execution.formats.text import append_line
from floe.execution.site import Site
from floe.spec.datasets import ControlManifest, JsonManifest, TrailerManifest

MARKER = "_SUCCESS"


def seal_folder(
    place: VersionPlace, folder: Path, reading: Reading, rows: int | None
) -> Mapping[str, Any]:
    """Make a version directory complete; return what the catalog is to keep of it."""
    (folder / MARKER).unlink(missing_ok=True)
    # Checksums that Hadoop keeps beside each file: of no use to others, and wrong once it changed.
    for path in folder.rglob(".*.crc"):
        path.unlink()
    files = promised_files(place, folder, reading, rows) if _is_described(place) else ()
    sync_tree(folder)
    if _marker(place) == MANIFEST:
        put_file(folder / MANIFEST, render_json(_about(place), files))
    else:
        put_file(folder / MARKER, b"")
    listed = [{**asdict(file), "path": str(folder / file.name)} for file in files]
    return {"files": listed} if listed else {}


def is_sealed(place: VersionPlace, folder: Path) -> bool:
    """Tell whether a version directory is complete."""
    return (folder / _marker(place)).is_file()


def _marker(place: VersionPlace) -> str:
    manifest = place.spec.manifest
    inner = isinstance(manifest, JsonManifest) and manifest.path is None
    return MANIFEST if inner else MARKER


def _is_described(place: VersionPlace) -> bool:
    return place.spec.manifest is not None or place.spec.feed is not None


def append_trailers(place: VersionPlace, folder: Path, reading: Reading, rows: int | None) -> None:
    """Give each file of a version its trailer line, if the dataset has them."""
    manifest = place.spec.manifest
    if not isinstance(manifest, TrailerManifest):
        return
    for path in version_files(folder):
        found = rows if rows is not None else reading.count_rows(path)
        checksum = content_checksum(path, reading.layout, manifest.checksum or "sha256")
        line = render_trailer(manifest, reading.delimiter, found or 0, checksum)
        append_line(path, reading.layout, line)


def version_files(folder: Path) -> list[Path]:
    """Return the files of a version directory that hold data."""
    return [path for path in data_files(folder) if path != folder / MANIFEST]


def promised_files(
    place: VersionPlace, folder: Path, reading: Reading, rows: int | None
) -> tuple[PromisedFile, ...]:
    """Describe the files of a version directory, as a manifest does."""
    paths = version_files(folder)
    kind = getattr(place.spec.manifest, "checksum", None) or "sha256"
    return tuple(
        PromisedFile(
            name=path.relative_to(folder).as_posix(),
            rows=rows if rows is not None and len(paths) == 1 else reading.count_rows(path),
            size=path.stat().st_size,
            checksum=file_checksum(path, kind),
            algorithm=kind,
        )
        for path in paths
    )


def write_outer_manifest(site: Site, place: VersionPlace, folder: Path, reading: Reading) -> None:
    """Write the manifest that lies outside the version directory.

    Consumers watch for it, so it waits until the version has passed its checks.
    """
    manifest = place.spec.manifest
    target = manifest_file(site, place, folder)
    if target is None or not isinstance(manifest, JsonManifest | ControlManifest):
        return
    if isinstance(manifest, JsonManifest):
        if manifest.path is not None:
            files = promised_files(place, folder, reading, None)
            put_file(target, render_json(_about(place), files))
        return
    files = promised_files(place, folder, reading, None)
    rows = Promise(files).total_rows or 0
    checksum = files[0].checksum if len(files) == 1 else None
    put_file(target, render_control(manifest, rows, checksum))


def _about(place: VersionPlace) -> dict[str, str]:
    return {
        "dataset": place.dataset,
        "version": place.tag,
        "business_date": place.business_date.isoformat(),
    }
