"""Frames that are no process's become versions, as those of processes do."""

from typing import Any

import pytest

from floe.execution.assets import (
    FrameNotWrittenError,
    FrameWish,
    Moment,
    NothingToReadError,
    find_input,
    made_by,
    read_input,
    write_frame,
)
from floe.execution.cancelling import Cancellation, CancelledError
from floe.execution.spark.server import Server
from floe.execution.versions.contracts import ContractBrokenError
from tests.execution.workshop import MONDAY, TUESDAY, WEDNESDAY, Workshop

pytestmark = [pytest.mark.java, pytest.mark.slow]

FIRST, SECOND = (f"{number}1111111-2222-4333-8444-555555555555" for number in (1, 2))
SCHEMA = [{"name": "id", "type": "bigint"}]


@pytest.fixture
def shop(tmp_path: Any, spark_server: Server) -> Workshop:
    """A project that declares one dataset and no process."""
    shop = Workshop(tmp_path, spark_server)
    shop.declare({"bronze.orders": {"schema": SCHEMA}}, {})
    return shop


def wish(run: str = FIRST, moment: Moment | None = None) -> FrameWish:
    return FrameWish("bronze.orders", moment or Moment(TUESDAY), run)


def test_the_same_run_twice_writes_once(shop: Workshop) -> None:
    with shop.open() as project, project.sparks.session() as spark:
        first = write_frame(project.workspace, spark.range(3), wish())
        again = write_frame(project.workspace, spark.range(9), wish())
        assert first == again == made_by(project.workspace, FIRST)[0]
        assert (first.tag, first.rows, first.state) == ("2026-09-01.1", 3, "READY")
        assert project.states("bronze.orders") == {"2026-09-01.1": "READY"}
        assert spark.conf.get("spark.wap.branch", None) is None


def test_a_frame_that_cannot_be_computed_leaves_nothing_to_be_seen(shop: Workshop) -> None:
    with shop.open() as project, project.sparks.session() as spark:
        write_frame(project.workspace, spark.range(3), wish())
        bad = spark.sql("select cast(raise_error('no rates today') as bigint) as id")
        with pytest.raises(FrameNotWrittenError, match="no rates today"):
            write_frame(project.workspace, bad, wish(SECOND))
        other = spark.sql("select 'one' as id")
        with pytest.raises(ContractBrokenError, match="column 'id' is string instead of bigint"):
            write_frame(project.workspace, other, wish(SECOND))
        stopped = Cancellation()
        stopped.cancel(CancelledError("It was stopped by the user."))
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


def test_what_is_read_is_of_the_date_and_never_of_a_later_one(shop: Workshop) -> None:
    with shop.open() as project, project.sparks.session() as spark:
        write_frame(project.workspace, spark.range(1), wish(moment=Moment(MONDAY)))
        write_frame(project.workspace, spark.range(2), wish(SECOND, Moment(WEDNESDAY)))

        def rows(*wanted: Moment, until: Any = WEDNESDAY) -> int:
            found = find_input(project.workspace, "bronze.orders", wanted, until=until)
            return read_input(project.workspace, spark, found).count()

        assert rows(until=TUESDAY) == 1
        assert rows() == 2
        assert rows(Moment(MONDAY)) == 1
        assert rows(Moment(MONDAY), Moment(TUESDAY), Moment(WEDNESDAY)) == 3
        with pytest.raises(NothingToReadError, match="no READY version for 2026-09-01"):
            rows(Moment(TUESDAY))
