"""`floe catalog`: upgrade, check, ddl and stats, as a user types them."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from floe.catalog.database import open_catalog
from floe.catalog.migrate import CatalogOutdatedError, UnknownDialectError, known_revisions
from floe.cli.catalog import app

HEAD = known_revisions()[-1]


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An embedded catalog, set by FLOE_CATALOG_URL."""
    url = f"sqlite:///{tmp_path / 'catalog.db'}"
    monkeypatch.setenv("FLOE_CATALOG_URL", url)
    return url


def floe_catalog(*arguments: str) -> str:
    return CliRunner().invoke(app, arguments, catch_exceptions=False).stdout


def test_upgrade_prints_both_revisions(url: str) -> None:
    assert floe_catalog("upgrade") == f"Upgraded the catalog from revision none to {HEAD}.\n"
    assert floe_catalog("upgrade") == f"The catalog is already at revision {HEAD}.\n"


def test_check_fails_until_the_catalog_is_upgraded(url: str) -> None:
    with pytest.raises(CatalogOutdatedError, match="floe catalog upgrade"):
        floe_catalog("check")
    floe_catalog("upgrade")
    assert floe_catalog("check") == f"The catalog is up to date: revision {HEAD}.\n"


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql", "db2"])
def test_ddl_prints_sql_that_is_not_wrapped(dialect: str) -> None:
    written = floe_catalog("ddl", "--dialect", dialect)
    assert "CREATE VIEW dataset_version_schema (schema_id, dataset_version_id," in written
    assert f"SET version_num='{HEAD}'" in written


def test_ddl_refuses_an_unknown_dialect() -> None:
    with pytest.raises(UnknownDialectError):
        floe_catalog("ddl", "--dialect", "oracle")


def test_stats_counts_each_kind_of_row(url: str) -> None:
    counts = json.loads(floe_catalog("stats", "--json"))
    assert counts["datasets"] == counts["versions"] == counts["changes"] == 0
    assert "datasets" in floe_catalog("stats")


def test_stats_counts_new_rows(url: str) -> None:
    floe_catalog("upgrade")
    catalog = open_catalog(url)
    with catalog.engine.connect() as connection:
        connection.exec_driver_sql(
            "INSERT INTO dataset_schema VALUES ('h', 0, 'a', 'int', 'Y', '')"
        )
        connection.exec_driver_sql(
            "INSERT INTO dataset_schema VALUES ('h', 1, 'b', 'int', 'Y', '')"
        )
        connection.commit()
    catalog.close()
    assert json.loads(floe_catalog("stats", "--json"))["schemas"] == 1
