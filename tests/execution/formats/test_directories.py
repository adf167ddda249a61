"""Version directories with real Spark: feeds, manifests, stable location, removal."""

import gzip
import hashlib
import json
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from floe.execution.formats.contract import (
    DeliveryRejectedError,
    StoredVersion,
    VersionUnreadableError,
)
from floe.execution.formats.csv import CsvFormat
from floe.execution.formats.directories import DirectoryFormat
from floe.execution.formats.files import FilesFormat, FilesFunctionMissingError
from floe.execution.formats.locations import LatestOccupiedError, LocationError
from floe.execution.formats.parquet import ParquetFormat
from floe.execution.site import Site
from tests.execution.formats.factory import make_version, put

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

pytestmark = [pytest.mark.java, pytest.mark.slow]

CSV, PARQUET, FILES = CsvFormat(), ParquetFormat(), FilesFormat()
FEED: dict[str, Any] = {
    "format": "csv",
    "location": "out/{business_date}/{version}",
    "feed": {"latest": "out/latest"},
    "manifest": {"kind": "json", "checksum": "sha256"},
    "schema": [{"name": "id", "type": "bigint"}],
}


def written(
    site: Site,
    spark: "SparkSession",
    form: DirectoryFormat = CSV,
    tag: str = "2026-09-01.1",
    rows: int = 3,
    **spec: Any,
) -> StoredVersion:
    """Write a version of a feed without publishing it."""
    day = date.fromisoformat(tag.partition(".")[0])
    version = make_version("reporting.large_exposures", tag, day=day, **{**FEED, **spec})
    version = replace(version, path=form.locate(site, version).path)
    result = form.write(site, spark, spark.range(rows), version, "replace")
    assert result.rows == rows
    return replace(version, details={**version.details, **result.details})


def ids(
    site: Site, spark: "SparkSession", form: DirectoryFormat, version: StoredVersion
) -> list[int]:
    return sorted(row[0] for row in form.read(site, spark, version).collect())


def test_a_feed_is_one_file_with_a_manifest(site: Site, spark: "SparkSession") -> None:
    version = written(site, spark)
    folder = site.root / "out/2026-09-01/2026-09-01.1"
    assert sorted(path.name for path in folder.iterdir()) == [
        "large_exposures.csv",
        "manifest.json",
    ]
    data = folder / "large_exposures.csv"
    assert data.read_text() == "id\n0\n1\n2\n"
    assert json.loads((folder / "manifest.json").read_text()) == {
        "dataset": "reporting.large_exposures",
        "version": "2026-09-01.1",
        "business_date": "2026-09-01",
        "rows": 3,
        "files": [
            {
                "name": "large_exposures.csv",
                "size": 9,
                "rows": 3,
                "algorithm": "sha256",
                "checksum": hashlib.sha256(data.read_bytes()).hexdigest(),
            }
        ],
    }
    assert ids(site, spark, CSV, version) == [0, 1, 2]


def test_the_stable_location_points_at_the_newest_version(
    site: Site, spark: "SparkSession"
) -> None:
    latest = site.root / "out/latest"
    first = written(site, spark)
    assert not latest.exists()
    details = CSV.publish(site, spark, first, newest=True)
    assert details["latest"] == str(latest)
    assert latest.resolve() == Path(first.path or "")
    second = written(site, spark, tag="2026-09-02.1", rows=1)
    CSV.publish(site, spark, second, newest=True)
    CSV.publish(site, spark, second, newest=True)
    assert (latest / "large_exposures.csv").read_text() == "id\n0\n"
    assert json.loads((site.root / "out/latest.json").read_text()) == {
        "dataset": "reporting.large_exposures",
        "version": "2026-09-02.1",
        "business_date": "2026-09-02",
        "path": second.path,
    }
    CSV.publish(site, spark, first, newest=False)
    assert latest.resolve() == Path(second.path or "")
    CSV.show(site, spark, first)
    assert latest.resolve() == Path(first.path or "")
    CSV.hide(site, spark, second)
    assert latest.is_symlink()
    CSV.hide(site, spark, first)
    assert not latest.is_symlink()
    assert not (site.root / "out/latest.json").exists()
    put(latest / "mine.txt", "x")
    with pytest.raises(LatestOccupiedError, match="already exists and is not a link"):
        CSV.publish(site, spark, first, newest=True)


def test_a_version_without_its_marker_is_not_complete(site: Site, spark: "SparkSession") -> None:
    version = written(site, spark)
    assert CSV.is_whole(site, spark, version)
    (Path(version.path or "") / "manifest.json").unlink()
    assert not CSV.is_whole(site, spark, version)
    with pytest.raises(VersionUnreadableError, match="is not complete"):
        CSV.read(site, spark, version)
    CSV.discard(site, spark, version)
    CSV.discard(site, spark, version)
    assert not Path(version.path or "").exists()
    with pytest.raises(VersionUnreadableError, match="is missing"):
        CSV.read(site, spark, version)


def test_only_version_directories_are_removed(site: Site, spark: "SparkSession") -> None:
    kept = put(site.root / "data/precious.csv", "x")
    for path in ("data", "..", str(site.root)):
        with pytest.raises(LocationError):
            CSV.vacuum(site, spark, make_version(**FEED, path=str(site.root / path)))
    assert kept.exists()
    version = written(site, spark)
    assert CSV.vacuum(site, spark, version) > 9


def test_a_trailer_is_written_and_not_read_as_a_row(site: Site, spark: "SparkSession") -> None:
    trailer = {"kind": "trailer", "prefix": "TRL", "checksum_field": 3, "checksum": "md5"}
    options = {"delimiter": ";", "compression": "gzip"}
    version = written(site, spark, manifest=trailer, options=options)
    data = Path(version.path or "") / "large_exposures.csv.gz"
    digest = hashlib.md5(b"id\n0\n1\n2\n").hexdigest()
    assert gzip.decompress(data.read_bytes()).decode() == f"id\n0\n1\n2\nTRL;3;{digest}\n"
    assert ids(site, spark, CSV, version) == [0, 1, 2]
    taker = make_version(**{**FEED, "manifest": trailer, "options": options}, tag="x.1")
    taker = replace(taker, spec=taker.spec.model_copy(update={"location": "out/*/*/*.gz"}))
    delivery = CSV.find(site, taker)
    assert delivery is not None
    assert CSV.verify(site, spark, taker, delivery).rows == 3


def test_the_control_file_is_written_when_the_version_is_published(
    site: Site, spark: "SparkSession"
) -> None:
    control = {"kind": "control", "path": "out/{business_date}.ctl", "checksum_name": "sum"}
    version = written(site, spark, manifest=control)
    file = site.root / "out/2026-09-01.ctl"
    assert CSV.is_whole(site, spark, version)
    assert not file.exists()
    CSV.publish(site, spark, version, newest=True)
    digest = hashlib.sha256(b"id\n0\n1\n2\n").hexdigest()
    assert file.read_text() == f"rows=3\nsum={digest}\n"


def test_a_feed_may_have_any_encoding(site: Site, spark: "SparkSession") -> None:
    schema = [{"name": "name", "type": "string"}]
    version = make_version(**{**FEED, "schema": schema, "options": {"encoding": "cp1252"}})
    frame: Any = spark.createDataFrame([("Zürich €",)], "name string")
    CSV.write(site, spark, frame, version, "replace")
    data = Path(CSV.locate(site, version).path) / "positions.csv"
    assert data.read_bytes() == "name\nZürich €\n".encode("cp1252")
    version = replace(version, path=str(data.parent))
    assert CSV.read(site, spark, version).collect()[0][0] == "Zürich €"


def test_parquet_is_written_with_a_manifest_and_read(site: Site, spark: "SparkSession") -> None:
    version = written(site, spark, PARQUET, format="parquet")
    assert ids(site, spark, PARQUET, version) == [0, 1, 2]
    manifest = json.loads((Path(version.path or "") / "manifest.json").read_text())
    assert manifest["rows"] == 3
    assert all(file["name"].endswith(".zstd.parquet") for file in manifest["files"])


def test_delivered_parquet_gets_the_declared_columns(site: Site, spark: "SparkSession") -> None:
    landing = site.root / "landing"
    spark.sql("select 'x' name, 1 id").write.parquet(f"file://{landing}/a")
    spark.sql("select 2 id, 'y' name, 1.5 rate").write.parquet(f"file://{landing}/b")

    def delivered(*columns: str, folders: str = "*") -> StoredVersion:
        types = {"id": "bigint", "name": "string", "rate": "double"}
        version = make_version(
            format="parquet",
            location=f"landing/{folders}/*.parquet",
            options={"merge_schema": True},
            schema=[{"name": name, "type": types[name]} for name in columns],
        )
        delivery = PARQUET.find(site, version)
        assert delivery is not None
        return replace(version, path=delivery.path, details=delivery.details)

    frame = PARQUET.read(site, spark, delivered("id", "name", "rate"))
    assert sorted(tuple(row) for row in frame.collect()) == [(1, "x", None), (2, "y", 1.5)]
    assert dict(frame.dtypes)["id"] == "bigint"
    with pytest.raises(DeliveryRejectedError, match=r"not declared: rate"):
        PARQUET.read(site, spark, delivered("id", "name"))


FUNCTIONS = """
def read(spark, paths):
    return spark.read.text(paths[0]).selectExpr("cast(value as bigint) id")

def write(frame, path):
    with open(f"{path}/numbers.txt", "w") as file:
        file.writelines(f"{row.id}\\n" for row in frame.collect())
"""


def test_the_files_format_uses_functions_of_the_project(site: Site, spark: "SparkSession") -> None:
    put(site.root / "acme_files.py", FUNCTIONS)
    options = {"reader": "acme_files.read", "writer": "acme_files.write"}
    version = written(site, spark, FILES, format="files", options=options)
    assert ids(site, spark, FILES, version) == [0, 1, 2]
    bare = make_version(**{**FEED, "format": "files"}, path=version.path)
    listed = FILES.read(site, spark, bare).select("path", "length").collect()
    assert [tuple(row) for row in listed] == [(f"file:{version.path}/numbers.txt", 6)]
    with pytest.raises(FilesFunctionMissingError, match=r"options\.writer to a function"):
        FILES.write(site, spark, spark.range(1), bare, "replace")


def test_files_written_by_a_command_get_a_manifest(site: Site, spark: "SparkSession") -> None:
    version = make_version(**FEED)
    version = replace(version, path=CSV.locate(site, version).path)
    with pytest.raises(VersionUnreadableError, match="nothing was written to"):
        CSV.adopt(site, spark, version)
    put(Path(version.path or "") / "made.csv", "id\n7\n")
    result = CSV.adopt(site, spark, version)
    assert result.details["files"][0]["rows"] == 1
    assert ids(site, spark, CSV, version) == [7]
