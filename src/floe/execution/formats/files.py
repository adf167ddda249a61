"""Files in any layout, read and written by functions of the user's project."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from floe.errors import FloeError
from floe.execution.formats.contract import StoredVersion
from floe.execution.formats.directories import DirectoryFormat
from floe.execution.formats.storage import spark_paths
from floe.execution.site import Site
from floe.execution.user_code import load_function
from floe.spec.formats import FilesOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession


class FilesFunctionMissingError(FloeError):
    """A dataset of format files has no function to read or write it."""

    def __init__(self, dataset: str, role: str, signature: str) -> None:
        super().__init__(
            f"'{dataset}' has format files but no {role}. "
            f"Set options.{role} to a function {signature}, such as risk.files.{role}."
        )


class FilesFormat(DirectoryFormat):
    """format: files"""

    name = "files"

    def save(self, site: Site, frame: "DataFrame", version: StoredVersion, folder: Path) -> None:
        writer = _options(version).writer
        if writer is None:
            raise FilesFunctionMissingError(version.dataset, "writer", "(dataframe, path)")
        load_function(site, writer)(frame, str(folder))

    def load(
        self, site: Site, spark: "SparkSession", version: StoredVersion, files: Sequence[Path]
    ) -> "DataFrame":
        reader = _options(version).reader
        if reader is None:
            # Without a reader, return only the list of files.
            listed = spark.read.format("binaryFile").load(spark_paths(files))
            return listed.select("path", "length", "modificationTime")
        frame = load_function(site, reader)(spark, [str(path) for path in files])
        return cast("DataFrame", frame)


def _options(version: StoredVersion) -> FilesOptions:
    return cast("FilesOptions", version.spec.format_options)
