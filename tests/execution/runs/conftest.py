"""Fixtures for tests of runs."""

from pathlib import Path

import pytest

from floe.execution.spark.server import Server
from tests.execution.workshop import TOTAL_SQL, TOTALS, TRADES, TUESDAY, Workshop


@pytest.fixture
def shop(tmp_path: Path, spark_server: Server) -> Workshop:
    """A project with a process that sums a day's trades."""
    shop = Workshop(tmp_path, spark_server)
    shop.declare(
        {"raw.trades": TRADES, "risk.totals": TOTALS},
        {"totals": {"inputs": {"trades": "raw.trades"}, "outputs": {"totals": "risk.totals"},
                    "sql": TOTAL_SQL}},
    )  # fmt: skip
    shop.deliver(TUESDAY, (1, 10.0), (2, 5.5))
    return shop
