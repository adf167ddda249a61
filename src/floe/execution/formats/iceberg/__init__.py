"""Lake tables: written on a branch, checked there, then main is moved and the version tagged."""

from floe.execution.formats.iceberg.format import IcebergFormat

__all__ = ["IcebergFormat"]
