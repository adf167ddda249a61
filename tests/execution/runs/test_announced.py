"""Deliveries that their producers announce by a call before floe looks at them."""

import msgspec
import pytest

from floe.client.messages import dataset_message
from floe.events.ingest import read_claim
from floe.execution.receiving import receive_for
from floe.execution.versions.arrivals import Arrival
from tests.execution.workshop import TUESDAY, OpenShop, Workshop

pytestmark = [pytest.mark.java, pytest.mark.slow]


def announce(project: OpenShop, version: str) -> None:
    """Say that a version is READY, as an old job does."""
    message = dataset_message("raw.trades", version, business_date=TUESDAY)
    claim = read_claim(msgspec.json.encode(message))
    assert project.workspace.door.submit([claim]).result() == {}


def receive(project: OpenShop) -> Arrival:
    processes = project.workspace.site.spec.processes.values()
    (found,) = receive_for(project.workspace, project.sparks, processes, TUESDAY)
    return found


def test_a_delivery_is_the_version_that_was_announced_for_it(shop: Workshop) -> None:
    with shop.open() as project:
        announce(project, "feed-17")
        assert (receive(project).tag, receive(project).new) == ("feed-17", False)
        (only,) = project.versions("raw.trades")
        assert (only.version_tag, only.state, only.row_count) == ("feed-17", "READY", 2)
        shop.deliver(TUESDAY, (1, 10.0))
        assert receive(project).tag == "2026-09-01.2"


def test_an_announced_delivery_that_is_no_good_is_rejected(shop: Workshop) -> None:
    shop.write("id,amount\n1,many\n", f"landing/{TUESDAY}/trades.csv")
    with shop.open() as project:
        announce(project, "feed-17")
        assert receive(project).state == "REJECTED"
        assert project.states("raw.trades") == {"feed-17": "REJECTED"}
