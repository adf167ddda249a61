"""The example format of docs/formats.md is found by its entry point and works."""

import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from floe.execution.formats.contract import Deliverable, DeliveryRejectedError
from floe.execution.formats.registry import format_named
from floe.execution.site import Site
from floe.spec.formats import installed_formats, known_formats
from tests.execution.formats.factory import make_version, put

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

PAGE = Path(__file__).parents[3] / "docs" / "formats.md"
SECTION = PAGE.read_text().split("## A format of your own")[1]


def code(language: str) -> str:
    match = re.search(rf"```{language}\n(.*?)```", SECTION, re.DOTALL)
    assert match is not None
    return match[1]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package of the page, installed as by an installer."""
    packages = tmp_path / "packages"
    put(packages / "acme_formats.py", code("python"))
    entry = code("toml").replace('[project.entry-points."floe.formats"]', "[floe.formats]")
    put(packages / "acme-1.0.dist-info/entry_points.txt", entry.replace('"', ""))
    put(packages / "acme-1.0.dist-info/METADATA", "Name: acme\nVersion: 1.0\n")
    monkeypatch.setattr(sys, "path", [str(packages), *sys.path])
    for cached in (format_named, installed_formats):
        cached.cache_clear()
    yield
    sys.modules.pop("acme_formats", None)
    for cached in (format_named, installed_formats):
        cached.cache_clear()


def test_the_example_is_short() -> None:
    assert len(code("python").splitlines()) <= 30


@pytest.mark.java
@pytest.mark.slow
@pytest.mark.usefixtures("installed")
def test_a_custom_format_is_written_published_and_read(site: Site, spark: "SparkSession") -> None:
    assert "json_lines" in known_formats()
    own = format_named("json_lines")
    schema = [{"name": "id", "type": "bigint"}, {"name": "name", "type": "string"}]
    spec: dict[str, Any] = {
        "format": "json_lines",
        "location": "out/{version}",
        "schema": schema,
        "manifest": {"kind": "json"},
        "feed": {"latest": "out/latest"},
    }
    version = make_version(**spec)
    frame = cast("Any", spark.createDataFrame([(1, "a"), (2, "b")], "id bigint, name string"))
    version = replace(version, path=own.locate(site, version).path)
    assert own.write(site, spark, frame, version, "replace").rows == 2
    own.publish(site, spark, version, newest=True)
    assert sorted(own.read(site, spark, version).collect()) == [(1, "a"), (2, "b")]
    assert (site.root / "out/latest/manifest.json").is_file()

    # Another dataset reads it from there as a delivery.
    taker = make_version("acme.copy", **{**spec, "location": "out/latest/*.json"})
    assert isinstance(own, Deliverable)
    delivery = own.find(site, taker)
    assert delivery is not None
    assert own.verify(site, spark, taker, delivery).rows == 2
    data = next((site.root / "out/latest/").glob("part-*.json"))
    data.write_text(data.read_text() * 2)
    changed = own.find(site, taker)
    assert changed is not None
    with pytest.raises(DeliveryRejectedError, match="the manifest says"):
        own.verify(site, spark, taker, changed)
