"""Receiving deliveries: files that change meanwhile, links, duplicate keys, crashes."""

import os
from typing import Any

import pytest

from floe.execution.formats.contract import DeliveryRejectedError, VersionUnreadableError
from floe.execution.formats.csv import CsvFormat
from floe.execution.input_deliveries import receive_for
from floe.execution.spark.server import Server
from floe.execution.versions import arrivals
from floe.execution.versions.arrivals import Arrival
from tests.execution.workshop import TOTAL_SQL, TOTALS, TRADES, TUESDAY, OpenShop, Workshop

pytestmark = [pytest.mark.java, pytest.mark.slow]


@pytest.fixture
def shop(tmp_path: Any, spark_server: Server) -> Workshop:
    shop = Workshop(tmp_path, spark_server)
    unique = {"kind": "unique", "columns": ["id"]}
    shop.declare(
        {"raw.trades": {**TRADES, "checks": [unique]}, "risk.totals": TOTALS},
        {"totals": {"inputs": {"trades": "raw.trades"}, "outputs": {"totals": "risk.totals"},
                    "sql": TOTAL_SQL}},
    )  # fmt: skip
    shop.deliver(TUESDAY, (1, 10.0), (2, 5.5))
    return shop


def receive(project: OpenShop) -> Arrival:
    processes = project.workspace.site.spec.processes.values()
    (arrival,) = receive_for(project.workspace, project.sparks, processes, TUESDAY)
    return arrival


class ChangedBetween(CsvFormat):
    """CSV files that are overwritten while being read, keeping size and timestamp."""

    def read(self, site: Any, spark: Any, stored: Any) -> Any:
        frame = super().read(site, spark, stored)
        (path,) = self.files(site, stored)
        before = path.stat()
        path.write_text(path.read_text().replace("10.0", "99.9"))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        return frame


def test_a_file_that_changes_while_it_is_read_is_rejected_and_received_again(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    with shop.open() as project:
        with monkeypatch.context() as patched:
            patched.setattr(arrivals, "format_of", lambda *_: ChangedBetween())
            arrival = receive(project)
        assert arrival.state == "REJECTED"
        assert arrival.reason.startswith("trades.csv was changed while it was being read")
        again = receive(project)
        assert (again.tag, again.state) == ("2026-09-01.2", "READY")
        assert (1, 99.9) in project.rows("raw.trades", "2026-09-01.2")


def test_a_duplicate_key_is_named(shop: Workshop) -> None:
    shop.deliver(TUESDAY, (1, 10.0), (17, 1.0), (17, 2.0))
    with shop.open() as project:
        assert receive(project).reason == "unique_id: 2 rows share 1 key, such as id = 17"


def test_a_link_out_of_the_storage_root_is_not_followed(shop: Workshop) -> None:
    folder = shop.root / "landing" / str(TUESDAY)
    elsewhere = shop.root.parent / f"{shop.root.name}-elsewhere"
    folder.rename(elsewhere)
    folder.symlink_to(elsewhere)
    with shop.open() as project:
        arrival = receive(project)
        assert arrival.state == "REJECTED"
        assert arrival.reason == (
            f"the symbolic link landing/{TUESDAY} points outside the storage root, to {elsewhere}"
        )
        folder.unlink()
        inside = shop.root / "arrived"
        elsewhere.rename(inside)
        folder.symlink_to(inside)
        assert receive(project).state == "READY"


def test_a_damaged_version_is_reported_in_one_sentence(shop: Workshop) -> None:
    with shop.open() as project:
        assert receive(project).state == "READY"
    (shop.root / "landing" / str(TUESDAY) / "trades.csv").write_bytes(b"")
    for command in (("read", "raw.trades"), ("check", "raw.trades")):
        done = shop.floe(*command, check=False)
        assert done.returncode == 1
        assert "Version 2026-09-01.1 of 'raw.trades' cannot be read" in done.stderr
        assert "Traceback" not in done.stderr + done.stdout
    with pytest.raises(VersionUnreadableError), shop.open() as project:
        project.rows("raw.trades", "2026-09-01.1")


def test_an_asset_refuses_a_rejected_delivery_although_an_older_version_is_ready(
    shop: Workshop,
) -> None:
    from floe.execution.asset_versions import receive_deliveries

    with shop.open() as project, project.sparks.session() as spark:
        assert receive(project).state == "READY"
        shop.write("id,amount\n1,many\n", f"landing/{TUESDAY}/trades.csv")
        with pytest.raises(DeliveryRejectedError, match=r"trades\.csv line 2: 'many'"):
            receive_deliveries(project.workspace, spark, "raw.trades", [TUESDAY])


class FallsDown:
    """A delivery that crashes Spark a given number of times."""

    def __init__(self, times: int) -> None:
        self.left = times

    def __call__(self, workspace: Any, spark: Any, dataset: str, day: Any) -> Arrival:
        if self.left:
            self.left -= 1
            # What a client sees when the server lost its session.
            spark.stop()
            spark.sql("select 1").collect()
        return arrivals.receive(workspace, spark, dataset, day)


@pytest.mark.parametrize(("times", "state"), [(1, "READY"), (2, "MISSING")])
def test_a_delivery_that_crashes_spark_is_tried_twice(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch, times: int, state: str
) -> None:
    with shop.open() as project:
        monkeypatch.setattr("floe.execution.input_deliveries.receive", FallsDown(times))
        arrival = receive(project)
        assert arrival.state == state, arrival
        assert ("Spark stopped twice" in arrival.reason) == (state == "MISSING")
