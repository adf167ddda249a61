"""DB2: its DDL runs on Derby, which accepts DB2's syntax; statements are only compiled."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from ibm_db_sa.ibm_db import DB2Dialect_ibm_db
from sqlalchemy import select

from floe.catalog.database import Catalog, open_catalog
from floe.catalog.migrate import check_catalog, ddl, upgrade_catalog
from floe.catalog.stores import SearchDocument, store_for, store_of
from floe.catalog.stores.db2 import Db2Store, adapt, merge_statement
from floe.catalog.tables import Dataset, Lease, RunEvent, Table
from floe.execution.java import find_java
from tests.catalog.downgrade import downgrade_catalog

DB2 = adapt(DB2Dialect_ibm_db())
NOON = datetime(2026, 9, 1, 12, tzinfo=UTC)
LIVE_URL = os.environ.get("FLOE_TEST_DB2_URL")


@pytest.mark.java
def test_the_ddl_runs_on_derby_without_an_error(tmp_path: Path) -> None:
    script = tmp_path / "catalog.sql"
    script.write_text(f"connect 'jdbc:derby:memory:catalog;create=true';\n{ddl('db2')}")
    ran = subprocess.run(
        [
            find_java().executable,
            "-cp",
            str(_spark_jars() / "*"),
            f"-Dderby.stream.error.file={tmp_path / 'derby.log'}",
            "org.apache.derby.tools.ij",
            str(script),
        ],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert "ERROR" not in ran.stdout
    assert "1 row inserted" in ran.stdout


def _spark_jars() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent / "jars"


def test_the_ddl_contains_every_table_and_no_quoted_name() -> None:
    written = ddl("db2")
    made = re.findall(r"^CREATE TABLE (\w+)", written, re.MULTILINE)
    assert set(Table.metadata.tables) < set(made)
    assert '"' not in written


def test_the_ddl_generates_ids_that_nobody_can_set_by_hand() -> None:
    written = ddl("db2")
    assert "dataset_id BIGINT NOT NULL GENERATED ALWAYS AS IDENTITY" in written
    assert "BY DEFAULT" not in written


def test_writing_the_ddl_logs_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    ddl("db2")
    assert capfd.readouterr() == ("", "")


def test_an_upsert_is_a_merge_with_typed_parameters() -> None:
    written = merge_statement(Lease, ("name", "holder", "fence"), ("name",), ("holder",), DB2)
    assert written == (
        "MERGE INTO lease AS held USING (VALUES (CAST(? AS VARCHAR(300)), "
        "CAST(? AS VARCHAR(300)), CAST(? AS BIGINT))) AS given (name, holder, fence) "
        "ON held.name = given.name WHEN MATCHED THEN UPDATE SET holder = given.holder "
        "WHEN NOT MATCHED THEN INSERT (name, holder, fence) "
        "VALUES (given.name, given.holder, given.fence)"
    )


def test_an_upsert_without_updates_only_inserts() -> None:
    written = merge_statement(Lease, ("name", "holder"), ("name",), (), DB2)
    assert "WHEN MATCHED" not in written


def test_a_long_list_of_ids_is_split_into_chunks() -> None:
    listed = Db2Store().among(Dataset.__table__.c.dataset_id, range(2_500))
    written = str(select(Dataset.dataset_id).where(listed).compile(dialect=DB2))
    assert written.count(" IN (") == 3


def test_words_are_searched_by_like_with_wildcards_escaped() -> None:
    matches = Db2Store().matches(["50%", "cust"])
    compiled = select(matches).compile(dialect=DB2)
    assert "LIKE" in str(compiled)
    assert {"% 50/% %"[1:-1], " cust"} <= set(map(str, compiled.params.values()))


def test_a_locked_row_stays_locked_until_the_commit() -> None:
    locked = select(Lease.fence).where(Lease.name == "orders").with_for_update()
    assert str(locked.compile(dialect=DB2)).endswith(" WITH RS USE AND KEEP UPDATE LOCKS")


def test_an_empty_list_of_ids_matches_nothing() -> None:
    listed = Db2Store().among(Dataset.__table__.c.dataset_id, [])
    assert "WHERE" in str(select(Dataset.dataset_id).where(listed).compile(dialect=DB2))


def test_the_driver_is_loaded_for_db2_only() -> None:
    loaded = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, floe.catalog.migrate as m; m.open_ready_catalog('sqlite://').close();"
            "print([n for n in sys.modules if n.startswith('ibm_db')])",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert loaded.stdout == "[]\n"


def test_a_url_of_db2_gets_its_store() -> None:
    assert store_for("ibm_db_sa").name == store_for("db2").name == "db2"


@pytest.fixture
def live_catalog() -> Iterator[Catalog]:
    """A catalog in a real DB2 that has none yet."""
    if LIVE_URL is None:
        pytest.skip("FLOE_TEST_DB2_URL names no DB2 server")
    catalog = open_catalog(LIVE_URL)
    upgrade_catalog(catalog)
    yield catalog
    downgrade_catalog(catalog, "base")
    catalog.close()


def test_a_live_db2_upserts_searches_and_drops_events(live_catalog: Catalog) -> None:
    check_catalog(live_catalog)
    lease = {"name": "n", "holder": "ada", "fence": 1, "acquired_at": NOON, "expires_at": NOON}
    with live_catalog.writing() as session:
        store = store_of(session)
        for holder in ("ada", "bob"):
            rows = [{**lease, "holder": holder}]
            store.upsert(session, Lease, rows, key=("name",), update=("holder",))
        assert session.scalars(select(Lease.holder)).all() == ["bob"]
        dataset = Dataset(
            namespace="lake",
            name="gold.pnl",
            full_name="lake/gold.pnl",
            status="ACTIVE",
            needs_validation=False,
            created_at=NOON,
        )
        session.add(dataset)
        session.flush()
        words = SearchDocument(dataset.dataset_id, "gold pnl", "daily", "", "", "")
        store.index_documents(session, [words])
        found = store.matches(["daily", "go"])
        assert session.scalars(select(found.c.dataset_id)).all() == [dataset.dataset_id]
        assert session.scalars(select(RunEvent)).all() == []
