"""Deliveries that their producers announce before floe receives them."""

import sqlite3
from contextlib import closing

import msgspec
import pytest

from floe.catalog.versions import reserve_version
from floe.client.messages import dataset_message
from floe.events.ingest import read_claim
from floe.execution.input_deliveries import receive_for
from floe.execution.version_checks import check_waiting
from floe.execution.versions.arrivals import Arrival
from tests.execution.workshop import TUESDAY, OpenShop, Workshop

pytestmark = [pytest.mark.java, pytest.mark.slow]


def announce(project: OpenShop, version: str) -> None:
    """Announce a version as READY, as a legacy job does."""
    message = dataset_message("raw.trades", version, business_date=TUESDAY)
    claim = read_claim(msgspec.json.encode(message))
    assert project.workspace.door.submit([claim]).result() == {}


def receive(project: OpenShop) -> Arrival:
    processes = project.workspace.site.spec.processes.values()
    (arrival,) = receive_for(project.workspace, project.sparks, processes, TUESDAY)
    return arrival


def test_a_delivery_is_the_version_that_was_announced_for_it(shop: Workshop) -> None:
    with shop.open() as project:
        announce(project, "feed-17")
        assert (receive(project).tag, receive(project).new) == ("feed-17", False)
        (only,) = project.versions("raw.trades")
        assert (only.version_tag, only.state, only.row_count) == ("feed-17", "READY", 2)
        shop.deliver(TUESDAY, (1, 10.0))
        assert receive(project).tag == "2026-09-01.2"


def test_a_bad_announced_delivery_is_rejected(shop: Workshop) -> None:
    shop.write("id,amount\n1,many\n", f"landing/{TUESDAY}/trades.csv")
    with shop.open() as project:
        announce(project, "feed-17")
        assert receive(project).state == "REJECTED"
        assert project.states("raw.trades") == {"feed-17": "REJECTED"}


DATABASE = """
name: shop
datasets:
  ref.parties:
    format: jdbc
    options: {connection: risk, table: parties}
    schema: [{name: id, type: bigint}, {name: name, type: string}]
    checks: [{kind: not_null, columns: [name]}]
  ref.copy: {}
processes:
  copy: {inputs: {parties: ref.parties}, outputs: {c: ref.copy}, sql: select * from parties}
"""


@pytest.mark.parametrize(("name", "state"), [("Alpha", "READY"), (None, "REJECTED")])
def test_an_announced_database_table_is_copied_and_checked(
    shop: Workshop, name: str | None, state: str
) -> None:
    with closing(sqlite3.connect(shop.root / "risk.db")) as database, database:
        database.execute("create table parties (id integer, name text)")
        database.execute("insert into parties values (1, ?)", (name,))
    shop.write(DATABASE)
    platform = shop.root / "platform.yaml"
    before = platform.read_text() if platform.is_file() else ""
    platform.write_text(f"{before}\nconnections: {{risk: {{jdbc_url: 'jdbc:sqlite:risk.db'}}}}\n")
    with shop.open() as project:
        dataset_id = project.workspace.dataset_id("ref.parties")
        with project.workspace.catalog.writing() as session:
            reserve_version(session, dataset_id, TUESDAY, state="WRITTEN")
        with project.sparks.session() as spark:
            (checked,) = check_waiting(project.workspace, spark)
        assert (checked.tag, checked.state) == ("2026-09-01.1", state)
        (only,) = project.versions("ref.parties")
        assert (only.state, only.row_count) == (state, 1)
