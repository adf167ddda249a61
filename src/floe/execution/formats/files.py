"""Files that only their own reader and writer understand: functions of the user's project."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from floe.errors import FloeError
from floe.execution.formats.contract import VersionPlace
from floe.execution.formats.directories import DirectoryFormat
from floe.execution.formats.storage import spark_paths
from floe.execution.functions import load_function
from floe.execution.site import Site
from floe.spec.formats import FilesOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession


class FilesFunctionMissingError(FloeError):
    """Files are to be read or written, and nothing was said of how."""

    def __init__(self, dataset: str, which: str, signature: str) -> None:
        super().__init__(
            f"'{dataset}' has the format files and no {which}. "
            f"Give options.{which} a function {signature}, such as risk.files.{which}."
        )


class FilesFormat(DirectoryFormat):
    """format: files"""

    name = "files"

    def save(self, site: Site, frame: "DataFrame", place: VersionPlace, folder: Path) -> None:
        writer = _options(place).writer
        if writer is None:
            raise FilesFunctionMissingError(place.dataset, "writer", "(dataframe, path)")
        load_function(site, writer)(frame, str(folder))

    def load(
        self, site: Site, spark: "SparkSession", place: VersionPlace, files: Sequence[Path]
    ) -> "DataFrame":
        reader = _options(place).reader
        if reader is None:
            # Nobody said what is in them: then all there is to know is which files there are.
            listed = spark.read.format("binaryFile").load(spark_paths(files))
            return listed.select("path", "length", "modificationTime")
        frame = load_function(site, reader)(spark, [str(path) for path in files])
        return cast("DataFrame", frame)


def _options(place: VersionPlace) -> FilesOptions:
    return cast("FilesOptions", place.spec.format_options)
