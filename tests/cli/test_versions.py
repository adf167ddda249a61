"""`floe versions` and `floe diff`, as a user types them."""

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from uuid import uuid4

import pytest
from typer.testing import CliRunner

from floe.catalog import Catalog, Column, store_schemas
from floe.catalog.database import open_catalog
from floe.catalog.datasets import create_dataset
from floe.catalog.migrate import upgrade_catalog
from floe.catalog.versions import reserve_version, retract_version
from floe.cli import app

DAY = date(2026, 9, 7)
RUN = str(uuid4())


@pytest.fixture(autouse=True)
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalog]:
    """A catalog with one dataset that has no version yet."""
    url = f"sqlite:///{tmp_path / 'catalog.db'}"
    monkeypatch.setenv("FLOE_CATALOG_URL", url)
    monkeypatch.setenv("COLUMNS", "80")
    catalog = open_catalog(url)
    upgrade_catalog(catalog)
    with catalog.writing() as session:
        create_dataset(session, "lake", "credit.exposure")
    yield catalog
    catalog.close()


def add(catalog: Catalog, *columns: Column, rows: int = 1000, size: int = 2048) -> None:
    with catalog.writing() as session:
        schema = store_schemas(session, [columns])[0] if columns else None
        reserve_version(
            session,
            1,
            DAY,
            state="READY",
            row_count=rows,
            size_bytes=size,
            schema_hash=schema,
            produced_by_run_id=RUN,
        )


def floe(*arguments: str) -> str:
    return CliRunner().invoke(app, arguments, catch_exceptions=False).stdout


def test_versions_are_listed_newest_first_and_fit_the_screen(catalog: Catalog) -> None:
    add(catalog)
    add(catalog)
    printed = floe("versions", "credit.exposure")
    assert printed.index("2026-09-07.2") < printed.index("2026-09-07.1")
    assert "SUPERSEDED" in printed
    assert "1,000" in printed
    assert RUN[:8] in printed
    assert max(map(len, printed.splitlines())) <= 80


def test_the_date_of_a_partition_is_shown_beside_it(catalog: Catalog) -> None:
    with catalog.writing() as session:
        reserve_version(session, 1, DAY, partition_key="EMEA", state="READY")
    printed = floe("versions", "credit.exposure")
    assert "EMEA.1" in printed
    assert "2026-09-07" in printed


def test_a_limit_prints_that_there_are_more(catalog: Catalog) -> None:
    for _ in range(3):
        add(catalog)
    assert "There are more" in floe("versions", "credit.exposure", "--limit", "2")
    assert "There are more" not in floe("versions", "credit.exposure", "--limit", "3")


def test_json_has_full_run_ids_and_times(catalog: Catalog) -> None:
    add(catalog)
    answer = json.loads(floe("versions", "credit.exposure", "--json"))
    (version,) = answer["versions"]
    assert answer["more"] is False
    assert (version["tag"], version["run"]) == ("2026-09-07.1", RUN)
    assert version["made_at"].endswith("+00:00")


def test_a_dataset_without_versions_prints_that() -> None:
    assert floe("versions", "credit.exposure") == "credit.exposure has no version yet.\n"


def test_a_diff_shows_columns_and_sizes(catalog: Catalog) -> None:
    add(catalog, Column("id", "int"), Column("note", "string"))
    add(catalog, Column("id", "bigint"), rows=900)
    printed = floe("diff", "credit.exposure", f"{DAY}.1", f"{DAY}.2")
    assert "-100" in printed
    assert "retyped" in printed
    assert "removed" in printed
    assert "may fail" in printed
    answer = json.loads(floe("diff", "credit.exposure", f"{DAY}.1", f"{DAY}.2", "--json"))
    assert answer["rows"] == -100
    assert answer["schema"]["breaking"] is True
    assert answer["schema"]["removed"] == ["note"]
    assert answer["schema"]["retyped"] == [{"column": "id", "before": "int", "after": "bigint"}]


def test_a_diff_reports_equal_and_unknown_columns(catalog: Catalog) -> None:
    add(catalog, Column("id", "int"))
    add(catalog, Column("id", "int"))
    add(catalog)
    assert "are the same" in floe("diff", "credit.exposure", f"{DAY}.1", f"{DAY}.2")
    assert "not known" in floe("diff", "credit.exposure", f"{DAY}.1", f"{DAY}.3")


def test_versions_and_dataset_show_the_reason_of_a_retraction(catalog: Catalog) -> None:
    with catalog.writing() as session:
        version = reserve_version(session, 1, DAY, state="READY")
        retract_version(session, version, reason="wrong rates", actor="alice")
    for words in (("versions", "credit.exposure"), ("dataset", "credit.exposure")):
        assert "2026-09-07.1 was retracted by alice: wrong rates" in floe(*words)
        (listed,) = json.loads(floe(*words, "--json"))["versions"]
        assert (listed["reason"], listed["actor"]) == ("wrong rates", "alice")
