"""Manifests: what a delivery promises of itself, and whether that is so."""

from floe.execution.formats.manifests.finding import (
    find_delivery,
    fingerprint_of,
    manifest_file,
    unchanged_files,
)
from floe.execution.formats.manifests.verifying import verify_delivery
from floe.execution.formats.manifests.writing import seal_folder, write_outer_manifest

__all__ = [
    "find_delivery",
    "fingerprint_of",
    "manifest_file",
    "seal_folder",
    "unchanged_files",
    "verify_delivery",
    "write_outer_manifest",
]
