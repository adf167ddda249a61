"""Database tables with real Spark: immutable extracts, and outputs swapped in."""

import sqlite3
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import psycopg
import pytest

from floe.execution.databases import DatabaseError, call_procedure, run_statements, transaction
from floe.execution.formats.contract import (
    DeliveryRejectedError,
    DuplicateKeysError,
    StoredVersion,
    VersionUnreadableError,
)
from floe.execution.formats.jdbc import JdbcFormat, NoTableError
from floe.execution.site import Site
from tests.execution.formats.factory import make_site, make_version, put
from tools.postgresql import PostgresqlServer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession

pytestmark = [pytest.mark.java, pytest.mark.slow]

JDBC = JdbcFormat()
COUNTERPARTIES = [
    {"name": "counterparty_id", "type": "bigint"},
    {"name": "name", "type": "string"},
    {"name": "since", "type": "date"},
    {"name": "limit_eur", "type": "decimal(18,2)"},
]


@pytest.fixture
def sqlite_site(tmp_path: Path) -> Site:
    """A project whose risk database is a SQLite file in its own folder."""
    (tmp_path / "data").mkdir()
    with sqlite3.connect(tmp_path / "data/risk.db") as database:
        database.execute(
            "create table counterparty (counterparty_id integer, name text, since text, limit_eur)"
        )
        database.executemany(
            "insert into counterparty values (?, ?, ?, ?)",
            [(1, "Alpha", "2020-01-31", 1000), (2, "Beta", None, 2.5), (3, "Gamma", None, None)],
        )
    database.close()
    return make_site(tmp_path, {"connections": {"risk": {"jdbc_url": "jdbc:sqlite:data/risk.db"}}})


@pytest.fixture
def pg_site(tmp_path: Path, postgresql: PostgresqlServer) -> Iterator[Site]:
    """A project whose risk database is on a PostgreSQL server."""
    name = f"risk_{uuid4().hex}"
    postgresql.create_database(name)
    address = f"jdbc:postgresql://127.0.0.1:{postgresql.port}/{name}"
    connection = {
        "jdbc_url": address,
        "user": "postgres",
        "password": "secret://env/RISK_PASSWORD",
    }
    yield make_site(tmp_path, {"connections": {"risk": connection}}, RISK_PASSWORD="sesame")
    postgresql.drop_database(name)


def output(tag: str = "2026-09-01.1", **spec: Any) -> StoredVersion:
    options = {"connection": "risk", "table": "exposure"}
    schema = [
        {"name": "as_of", "type": "date"},
        {"name": "id", "type": "bigint"},
        {"name": "amount", "type": "decimal(18,2)"},
    ]
    return make_version(
        "risk.exposure", tag, **{"format": "jdbc", "options": options, "schema": schema, **spec}
    )


def frame_of(spark: "SparkSession", *rows: tuple[str, int, int]) -> "DataFrame":
    data = [(date.fromisoformat(day), row_id, Decimal(amount)) for day, row_id, amount in rows]
    return spark.createDataFrame(data, "as_of date, id bigint, amount decimal(18,2)")


def write(
    site: Site,
    spark: "SparkSession",
    version: StoredVersion,
    *rows: tuple[str, int, int],
    mode: Any = "replace",
) -> StoredVersion:
    """Write a version to its staging table."""
    spot = JDBC.locate(site, version)
    version = replace(version, path=spot.path, details=spot.details)
    written = JDBC.write(site, spark, frame_of(spark, *rows), version, mode)
    assert written.rows == len(rows)
    return replace(version, details={**version.details, **written.details})


def publish(site: Site, spark: "SparkSession", version: StoredVersion) -> StoredVersion:
    return replace(version, details=JDBC.publish(site, spark, version, newest=True))


def content(frame: "DataFrame") -> list[tuple[str, int, int]]:
    return sorted((str(row[0]), row[1], int(row[2])) for row in frame.collect())


SEPTEMBER = [("2026-09-01", 1, 10), ("2026-09-01", 2, 20)]


def test_an_extract_does_not_change_with_its_source(
    sqlite_site: Site, spark: "SparkSession"
) -> None:
    put(sqlite_site.root / "sql/extract.sql", "select * from counterparty where name <> 'Gamma';\n")
    options = {"connection": "risk", "query": "sql/extract.sql"}
    version = make_version("ref.parties", format="jdbc", options=options, schema=COUNTERPARTIES)
    delivery = JDBC.find(sqlite_site, version)
    assert delivery is not None
    assert delivery.path == str(sqlite_site.root / ".floe/extracts/ref.parties/2026-09-01.1")
    written = JDBC.extract(sqlite_site, spark, version)
    assert written.rows == 2
    assert written.details["path"] == delivery.path
    run_statements(sqlite_site, "risk", ["delete from counterparty"], {})
    version = replace(version, path=delivery.path, details=written.details)
    assert [
        tuple(row) for row in JDBC.read(sqlite_site, spark, version).orderBy("name").collect()
    ] == [
        (1, "Alpha", date(2020, 1, 31), Decimal("1000.00")),
        (2, "Beta", None, Decimal("2.50")),
    ]
    JDBC.discard(sqlite_site, spark, version)
    assert not Path(delivery.path).exists()
    with pytest.raises(VersionUnreadableError, match="is missing"):
        JDBC.read(sqlite_site, spark, version)


def test_the_fingerprint_of_an_extract_depends_on_content_not_on_order(
    sqlite_site: Site, spark: "SparkSession"
) -> None:
    def fingerprint(query: str, tag: str) -> Any:
        options = {"connection": "risk", "query": query}
        version = make_version(
            "ref.parties", tag, format="jdbc", options=options, schema=COUNTERPARTIES
        )
        return JDBC.extract(sqlite_site, spark, version).details["fingerprint"]

    first = fingerprint("select * from counterparty order by name", "2026-09-01.1")
    assert fingerprint("select * from counterparty order by name desc", "2026-09-01.2") == first
    run_statements(
        sqlite_site, "risk", ["update counterparty set name = 'B' where name = 'Beta'"], {}
    )
    assert fingerprint("select * from counterparty order by name", "2026-09-01.3") != first
    assert fingerprint("select * from counterparty where 1 = 0", "2026-09-01.4") == "0-0"


def test_a_source_without_a_declared_column_is_rejected(
    sqlite_site: Site, spark: "SparkSession"
) -> None:
    options = {"connection": "risk", "query": "select counterparty_id from counterparty"}
    schema = [*COUNTERPARTIES[:1], {"name": "rating", "type": "string"}]
    version = make_version("ref.parties", format="jdbc", options=options, schema=schema)
    with pytest.raises(DeliveryRejectedError, match="rating"):
        JDBC.extract(sqlite_site, spark, version)
    with pytest.raises(NoTableError, match=r"'ref\.parties' is the result of a query"):
        JDBC.locate(sqlite_site, version)


def test_a_version_is_written_checked_and_swapped_in_on_sqlite(
    sqlite_site: Site, spark: "SparkSession"
) -> None:
    first = write(sqlite_site, spark, output(), *SEPTEMBER)
    assert content(JDBC.read_draft(sqlite_site, spark, first)) == SEPTEMBER
    assert JDBC.is_whole(sqlite_site, spark, first)
    first = publish(sqlite_site, spark, first)
    assert publish(sqlite_site, spark, first) == first
    assert content(JDBC.read(sqlite_site, spark, first)) == SEPTEMBER
    second = publish(
        sqlite_site, spark, write(sqlite_site, spark, output("2026-09-02.1"), ("2026-09-02", 9, 9))
    )
    assert content(JDBC.read(sqlite_site, spark, second)) == [("2026-09-02", 9, 9)]
    with pytest.raises(VersionUnreadableError, match="exposure holds a later version"):
        JDBC.read(sqlite_site, spark, first)
    with pytest.raises(VersionUnreadableError, match="keeps only its newest"):
        JDBC.show(sqlite_site, spark, first)


@pytest.mark.postgresql
class TestPostgresql:
    def test_a_table_is_read_in_parallel_parts(self, pg_site: Site, spark: "SparkSession") -> None:
        fill = [
            "create schema risk",
            "create table risk.trade as "
            "select n as id, date '2026-09-01' + (n % 7) as as_of, n * 1.5 as amount "
            "from generate_series(1, 1000) n",
        ]
        run_statements(pg_site, "risk", fill, {})
        options = {
            "connection": "risk",
            "table": "risk.trade",
            "partition_column": "id",
            "num_partitions": 4,
            "query_timeout_seconds": 60,
        }
        version = make_version("risk.trade", format="jdbc", options=options)
        written = JDBC.extract(pg_site, spark, version)
        assert written.rows == 1000
        assert len(list(Path(str(written.details["path"])).glob("*.parquet"))) == 4
        by_day = {**options, "partition_column": "as_of", "lower_bound": "2026-09-01"}
        version = make_version("risk.trade", "2026-09-01.2", format="jdbc", options=by_day)
        assert (
            JDBC.extract(pg_site, spark, version).details["fingerprint"]
            == (written.details["fingerprint"])
        )
        run_statements(pg_site, "risk", ["delete from risk.trade"], {})
        assert JDBC.extract(pg_site, spark, version).rows == 0

    def test_a_reader_never_sees_half_a_version(
        self, pg_site: Site, spark: "SparkSession", postgresql: PostgresqlServer
    ) -> None:
        publish(pg_site, spark, write(pg_site, spark, output(), *SEPTEMBER))
        seen: set[tuple[int, int]] = set()
        done = threading.Event()

        def look() -> None:
            database = pg_site.connection("risk").jdbc_url or ""
            dsn = postgresql.dsn(database.rpartition("/")[2])
            with psycopg.connect(dsn, autocommit=True) as connection:
                while not done.is_set():
                    cursor = connection.execute("select count(*), sum(amount) from exposure")
                    seen.add(cursor.fetchone())  # type: ignore[arg-type]

        reader = threading.Thread(target=look)
        reader.start()
        try:
            for n in range(2, 6):
                rows = [("2026-09-01", row_id, n) for row_id in range(n * 10)]
                publish(pg_site, spark, write(pg_site, spark, output(f"2026-09-01.{n}"), *rows))
        finally:
            done.set()
            reader.join()
        whole = {(2, 30), (20, 40), (30, 90), (40, 160), (50, 250)}
        assert len(seen) > 1
        assert {(count, int(total)) for count, total in seen} <= whole

    def test_a_partition_is_overwritten_and_the_others_stay(
        self, pg_site: Site, spark: "SparkSession"
    ) -> None:
        how: Any = {"partition_column": "as_of"}
        first = write(pg_site, spark, output(**how), *SEPTEMBER, mode="overwrite_partition")
        first = publish(pg_site, spark, first)
        other = replace(output("2026-09-02.1", **how), business_date=date(2026, 9, 2))
        other = write(pg_site, spark, other, ("2026-09-02", 1, 5), mode="overwrite_partition")
        other = publish(pg_site, spark, other)
        assert content(JDBC.read(pg_site, spark, first)) == SEPTEMBER
        again = write(
            pg_site, spark, output("2026-09-01.2", **how), ("2026-09-01", 7, 7),
            mode="overwrite_partition",
        )  # fmt: skip
        assert JDBC.is_whole(pg_site, spark, again)
        again = publish(pg_site, spark, again)
        assert content(JDBC.read(pg_site, spark, again)) == [("2026-09-01", 7, 7)]
        assert content(JDBC.read(pg_site, spark, other)) == [("2026-09-02", 1, 5)]
        with pytest.raises(VersionUnreadableError):
            JDBC.read(pg_site, spark, first)
        later = replace(output("2026-09-03.1", **how), business_date=date(2026, 9, 3))
        later = write(pg_site, spark, later, ("2026-09-03", 3, 3), mode="overwrite_partition")
        publish(pg_site, spark, later)
        # Not the last published version, but still the newest of its partition.
        JDBC.hide(pg_site, spark, again)
        held = run_statements(pg_site, "risk", ["delete from exposure where id = 7"], {})
        assert held == [0]
        assert content(JDBC.read(pg_site, spark, other)) == [("2026-09-02", 1, 5)]

    def test_rows_are_appended_and_merged(self, pg_site: Site, spark: "SparkSession") -> None:
        publish(pg_site, spark, write(pg_site, spark, output(), *SEPTEMBER))
        extra = write(pg_site, spark, output("2026-09-01.2"), ("2026-09-01", 3, 30), mode="append")
        publish(pg_site, spark, publish(pg_site, spark, extra))
        with pytest.raises(VersionUnreadableError, match="'append' cannot be told from the other"):
            JDBC.hide(pg_site, spark, extra)
        merged = write(
            pg_site, spark, output("2026-09-01.3", keys=["as_of", "id"]),
            ("2026-09-01", 2, 99), ("2026-09-01", 4, 40), mode="merge",
        )  # fmt: skip
        merged = publish(pg_site, spark, merged)
        expected = [("2026-09-01", 1, 10), ("2026-09-01", 2, 99)]
        expected += [("2026-09-01", 3, 30), ("2026-09-01", 4, 40)]
        assert content(JDBC.read(pg_site, spark, merged)) == expected
        with pytest.raises(DuplicateKeysError, match=r"as_of = 2026-09-01, id = 5 \(2 rows\)"):
            write(
                pg_site, spark, output("2026-09-01.4", keys=["as_of", "id"]),
                ("2026-09-01", 5, 1), ("2026-09-01", 5, 2), mode="merge",
            )  # fmt: skip

    def test_a_crash_after_the_swap_is_recognised(
        self, pg_site: Site, spark: "SparkSession"
    ) -> None:
        draft = write(pg_site, spark, output(), *SEPTEMBER)
        JDBC.publish(pg_site, spark, draft, newest=True)
        # The catalog still holds the details from before the crash.
        assert JDBC.is_whole(pg_site, spark, draft)
        assert content(JDBC.read(pg_site, spark, publish(pg_site, spark, draft))) == SEPTEMBER

    def test_a_discarded_draft_leaves_nothing(self, pg_site: Site, spark: "SparkSession") -> None:
        draft = write(pg_site, spark, output(), *SEPTEMBER)
        JDBC.discard(pg_site, spark, draft)
        JDBC.discard(pg_site, spark, draft)
        assert not JDBC.is_whole(pg_site, spark, draft)
        with pytest.raises(VersionUnreadableError, match="is missing"):
            publish(pg_site, spark, draft)

    def test_an_older_date_stays_in_its_staging_table_until_it_is_shown(
        self, pg_site: Site, spark: "SparkSession"
    ) -> None:
        newer = publish(pg_site, spark, write(pg_site, spark, output("2026-09-02.1"), *SEPTEMBER))
        older = write(pg_site, spark, output(), ("2026-09-01", 5, 5))
        older = replace(older, details=JDBC.publish(pg_site, spark, older, newest=False))
        assert content(JDBC.read(pg_site, spark, newer)) == SEPTEMBER
        assert content(JDBC.read(pg_site, spark, older)) == [("2026-09-01", 5, 5)]
        JDBC.hide(pg_site, spark, newer)
        assert JDBC.show(pg_site, spark, older) is not None
        assert content(JDBC.read(pg_site, spark, older)) == [("2026-09-01", 5, 5)]

    def test_statements_run_in_one_transaction(self, pg_site: Site) -> None:
        script = """
            create table day (as_of date, note text);
            insert into day values (:business_date, 'a; b');
        """
        params = {"business_date": date(2026, 9, 1), "run_id": "r"}
        assert run_statements(pg_site, "risk", [script], params)[-1] == 1
        with pytest.raises(
            DatabaseError, match=r'"nowhere" does not exist.*select \* from nowhere'
        ):
            run_statements(pg_site, "risk", ["delete from day", "select * from nowhere"], {})
        assert run_statements(pg_site, "risk", ["delete from day where note = 'a; b'"], {}) == [1]
        procedure = """
            create procedure add_day(d date) language sql as $$
                insert into day values (d, 'x'); insert into day values (d, 'y');
            $$
        """
        run_statements(pg_site, "risk", [procedure], {})
        call_procedure(pg_site, "risk", "add_day", {"d": date(2026, 9, 2)}, {})
        assert run_statements(pg_site, "risk", ["delete from day"], {}) == [2]

    def test_a_procedure_gets_the_standard_values_that_it_has_parameters_for(
        self, pg_site: Site
    ) -> None:
        procedure = """
            create table note (day date, part text, run text, level int);
            create schema audit;
            create procedure audit.mark(business_date date, partition text, run_id text, level int)
            language sql as $$ insert into note values (business_date, partition, run_id, level) $$;
            create procedure plain(level int)
            language sql as $$ insert into note values (null, null, null, level) $$;
        """
        run_statements(pg_site, "risk", [procedure], {})
        offered = {"business_date": date(2026, 9, 1), "partition": "EMEA", "run_id": "r1"}
        call_procedure(pg_site, "risk", "audit.mark", {"level": 1}, {**offered, "level": 1})
        call_procedure(pg_site, "risk", "plain", {"level": 2}, {**offered, "level": 2})
        with transaction(pg_site, "risk") as database:
            assert database.fetch("select * from note order by level") == [
                (date(2026, 9, 1), "EMEA", "r1", 1),
                (None, None, None, 2),
            ]

    def test_the_password_is_in_no_url_and_no_message(
        self, pg_site: Site, spark: "SparkSession"
    ) -> None:
        from floe.execution.formats.jdbc_tables import connection_settings

        settings = connection_settings(pg_site, output())
        assert settings["password"] == "sesame"
        assert "sesame" not in settings["url"]
        with pytest.raises(DatabaseError) as caught:
            run_statements(pg_site, "risk", ["select nothing"], {"password": "sesame"})
        assert "sesame" not in str(caught.value)
