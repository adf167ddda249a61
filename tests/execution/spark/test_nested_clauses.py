"""The numbers of WITH clauses on a server that was just started.

Low ones are mistaken for those that Spark gives anew, and then a process fails whose steps stand on
steps that others read as well: "key not found: 3". It takes a server of the right age to see it;
what is seen here is that no server is that young.
"""

import re
from pathlib import Path

import pytest

from floe.execution.spark.clients import NUMBERS
from floe.execution.spark.explaining import explain
from floe.execution.spark.queries import query
from floe.execution.spark.server import ensure_server, stop_server
from floe.execution.spark.session import close_session, open_session
from tests.execution.sites import make_site

pytestmark = [pytest.mark.java, pytest.mark.slow]


def test_the_first_clause_has_a_number_beyond_those_of_any_query(tmp_path: Path) -> None:
    site = make_site(tmp_path)
    spark = open_session(site, ensure_server(site))
    try:
        told = explain(spark, query(spark, "WITH one AS (SELECT 1) SELECT * FROM one"))
    finally:
        close_session(spark)
        stop_server(site)
    numbers = [int(one) for one in re.findall(r"CTERelationDef (\d+)", told)]
    assert numbers
    assert min(numbers) >= NUMBERS
