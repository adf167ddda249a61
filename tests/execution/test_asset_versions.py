"""Frames returned by assets are written as versions."""

from typing import Any

import pytest

from floe.execution.asset_versions import (
    FrameNotWrittenError,
    FrameTarget,
    MissingVersionError,
    VersionKey,
    find_input,
    output_versions,
    read_input,
    write_frame,
)
from floe.execution.cancellation import Cancellation, CancelledError
from floe.execution.spark.server import Server
from floe.execution.versions.schema_fit import ContractBrokenError
from tests.execution.workshop import MONDAY, TUESDAY, WEDNESDAY, Workshop

pytestmark = [pytest.mark.java, pytest.mark.slow]

FIRST, SECOND = (f"{digit}1111111-2222-4333-8444-555555555555" for digit in (1, 2))
SCHEMA = [{"name": "id", "type": "bigint"}]


@pytest.fixture
def shop(tmp_path: Any, spark_server: Server) -> Workshop:
    """A project that declares one dataset and no process."""
    shop = Workshop(tmp_path, spark_server)
    shop.declare({"bronze.orders": {"schema": SCHEMA}}, {})
    return shop


def wish(run: str = FIRST, moment: VersionKey | None = None) -> FrameTarget:
    return FrameTarget("bronze.orders", moment or VersionKey(TUESDAY), run)


def test_repeating_a_run_writes_once(shop: Workshop) -> None:
    with shop.open() as project, project.sparks.session() as spark:
        first = write_frame(project.workspace, spark.range(3), wish())
        again = write_frame(project.workspace, spark.range(9), wish())
        assert first == again == output_versions(project.workspace, FIRST)[0]
        assert (first.tag, first.rows, first.state) == ("2026-09-01.1", 3, "READY")
        assert project.states("bronze.orders") == {"2026-09-01.1": "READY"}
        assert spark.conf.get("spark.wap.branch", None) is None


def test_a_failed_frame_is_invisible_to_readers(shop: Workshop) -> None:
    with shop.open() as project, project.sparks.session() as spark:
        write_frame(project.workspace, spark.range(3), wish())
        bad = spark.sql("select cast(raise_error('no rates today') as bigint) as id")
        with pytest.raises(FrameNotWrittenError, match="no rates today"):
            write_frame(project.workspace, bad, wish(SECOND))
        other = spark.sql("select 'one' as id")
        with pytest.raises(ContractBrokenError, match="column 'id' is string instead of bigint"):
            write_frame(project.workspace, other, wish(SECOND))
        stopped = Cancellation()
        stopped.cancel(CancelledError("The run was stopped by the user."))
        with pytest.raises(CancelledError):
            write_frame(project.workspace, bad, wish(SECOND), cancellation=stopped)
        assert project.states("bronze.orders") == {
            "2026-09-01.1": "READY",
            "2026-09-01.2": "ABANDONED",
            "2026-09-01.3": "REJECTED",
            "2026-09-01.4": "ABANDONED",
        }
        assert project.main("bronze.orders") == [(0,), (1,), (2,)]
        assert spark.conf.get("spark.wap.branch", None) is None


def test_an_asset_never_reads_a_later_date(shop: Workshop) -> None:
    with shop.open() as project, project.sparks.session() as spark:
        write_frame(project.workspace, spark.range(1), wish(moment=VersionKey(MONDAY)))
        write_frame(project.workspace, spark.range(2), wish(SECOND, VersionKey(WEDNESDAY)))

        def rows(*wanted: VersionKey, until: Any = WEDNESDAY) -> int:
            planned = find_input(project.workspace, "bronze.orders", wanted, until=until)
            return read_input(project.workspace, spark, planned).count()

        assert rows(until=TUESDAY) == 1
        assert rows() == 2
        assert rows(VersionKey(MONDAY)) == 1
        assert rows(VersionKey(MONDAY), VersionKey(TUESDAY), VersionKey(WEDNESDAY)) == 3
        with pytest.raises(MissingVersionError, match="no READY version for 2026-09-01"):
            rows(VersionKey(TUESDAY))
