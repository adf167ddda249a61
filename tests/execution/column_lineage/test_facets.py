"""Traced lineage is sent as a facet and read back from the catalog."""

import json

import pytest
from openlineage.client.facet_v2 import column_lineage_dataset

from floe import clock
from floe.catalog.column_lineage import list_row_sources, walk_columns
from floe.catalog.database import Catalog
from floe.catalog.datasets import find_dataset
from floe.catalog.recording import Recorder, record_group
from floe.events.ingest import read_claim
from floe.execution.column_lineage import OutputLineage, SqlStep, to_facet, trace
from tests.events.factory import LAKE, at, event, read, written
from tests.execution.column_lineage.examples import INPUTS

DATASETS = {"p": (LAKE, "credit.positions"), "fx": (LAKE, "market.fx"), "c": (LAKE, "credit.coll")}
SQL = """
    select p.party, sum(amount / rate) as eur, count(*) as n,
           max(case when product = 'swap' then id end) as newest,
           sum(worth) over (partition by p.day) as held
    from p join fx on fx.ccy = p.ccy join c using (party)
    where amount > 0 group by p.party, worth, p.day order by p.party
"""


def facet_of(sql: str) -> dict[str, object]:
    facet = to_facet(trace([SqlStep("out", sql)], INPUTS, {"out": ()})["out"], DATASETS)
    assert facet is not None
    return facet


def test_a_column_has_an_entry_for_each_source_with_all_its_uses() -> None:
    sql = "select max(amount) over (order by amount) as a from p where amount > 0"
    field = {"namespace": LAKE, "name": "credit.positions", "field": "amount"}
    assert facet_of(sql) == {
        "fields": {
            "a": {
                "inputFields": [
                    field
                    | {
                        "transformations": [
                            {"type": "DIRECT", "subtype": "AGGREGATION"},
                            {"type": "INDIRECT", "subtype": "WINDOW"},
                        ]
                    }
                ]
            }
        },
        "dataset": [field | {"transformations": [{"type": "INDIRECT", "subtype": "FILTER"}]}],
    }


def test_a_column_without_sources_is_in_the_facet_but_an_unknown_one_is_not() -> None:
    assert facet_of("select 1 as one, nothing as lost from fx") == {
        "fields": {"one": {"inputFields": []}}
    }


def test_without_known_lineage_there_is_no_facet() -> None:
    assert to_facet(OutputLineage(unknown="a function"), DATASETS) is None


def test_two_versions_of_one_dataset_are_one_source() -> None:
    twice = {"p": (LAKE, "credit.positions"), "c": (LAKE, "credit.positions")}
    sql = "select p.party + c.party as a from p cross join c"
    facet = to_facet(trace([SqlStep("out", sql)], INPUTS, {"out": ()})["out"], twice)
    assert facet is not None
    assert len(facet["fields"]["a"]["inputFields"]) == 1


@pytest.mark.parametrize("sql", [SQL, "select count(*) as n from fx"])
def test_openlineages_client_accepts_the_facet(sql: str) -> None:
    facet = facet_of(sql)
    fields, rows = facet["fields"], facet["dataset"]
    assert isinstance(fields, dict)
    assert isinstance(rows, list)
    for field in [*rows, *(source for entry in fields.values() for source in entry["inputFields"])]:
        uses = [column_lineage_dataset.Transformation(**use) for use in field["transformations"]]
        column_lineage_dataset.InputField(**{**field, "transformations": uses})


def record(catalog: Catalog, facet: dict[str, object]) -> None:
    body = json.loads(
        event(
            "COMPLETE",
            at(0),
            inputs=[read(name) for _, name in DATASETS.values()],
            outputs=[written("credit.exposure")],
        )
    )
    body["outputs"][0]["facets"]["columnLineage"] = facet
    recorder = Recorder(catalog.store)
    claim = read_claim(json.dumps(body).encode(), historical=False)
    assert record_group(catalog, recorder, [claim], clock.now()) == {}
    recorder.close()


ROWS_ONLY = {"transformations": [{"type": "INDIRECT", "subtype": "ROWS"}]}


def test_a_table_that_is_only_counted_is_in_the_facet() -> None:
    source = {"namespace": LAKE, "name": "market.fx", "field": "*"}
    assert facet_of("select count(*) as n from fx") == {
        "fields": {"n": {"inputFields": []}},
        "dataset": [source | ROWS_ONLY],
    }


def test_a_table_does_not_count_as_rows_only_if_something_is_unknown() -> None:
    assert "dataset" not in facet_of("select count(*) as n, nothing as lost from fx")


@pytest.mark.parametrize(
    ("sql", "also_read"),
    [
        ("select count(*) as n from fx", ["market.fx"]),
        ("select p.id from p cross join fx", ["market.fx"]),
        ("select p.id, (select count(*) from fx) as n from p", ["market.fx"]),
        ("select id from p where exists (select 1 from c)", ["credit.coll"]),
        ("select id from p join fx on p.ccy = fx.ccy left anti join c using (party)",
         ["credit.coll", "market.fx"]),
        ("select id, rate from p join fx on p.ccy = fx.ccy", []),
    ],
)  # fmt: skip
def test_the_catalog_lists_tables_read_without_a_column(
    catalog: Catalog, sql: str, also_read: list[str]
) -> None:
    record(catalog, facet_of(sql))
    with catalog.reading() as session:
        assert list_row_sources(session, find_dataset(session, "credit.exposure")) == also_read


def test_the_catalog_reads_the_kinds_from_the_facet(catalog: Catalog) -> None:
    record(catalog, facet_of(SQL))
    with catalog.reading() as session:
        walked = walk_columns(session, find_dataset(session, "credit.exposure"), depth=1)
        names = {(node.dataset_id, node.column): node.dataset for node in walked.columns}
        edges = {
            (f"{names[edge.source]}.{edge.source.column}", edge.kind, edge.target.column)
            for edge in walked.edges
        }
    assert edges == {
        ("credit.positions.party", "DIRECT", "party"),
        ("credit.positions.amount", "AGGREGATE", "eur"),
        ("market.fx.rate", "AGGREGATE", "eur"),
        ("credit.positions.product", "CONDITIONAL", "newest"),
        ("credit.positions.id", "AGGREGATE", "newest"),
        ("credit.coll.worth", "AGGREGATE", "held"),
        ("credit.positions.day", "WINDOW", "held"),
        ("credit.positions.ccy", "JOIN", "*"),
        ("market.fx.ccy", "JOIN", "*"),
        ("credit.positions.party", "JOIN", "*"),
        ("credit.coll.party", "JOIN", "*"),
        ("credit.positions.amount", "FILTER", "*"),
        ("credit.positions.party", "AGGREGATE", "*"),
        ("credit.coll.worth", "AGGREGATE", "*"),
        ("credit.positions.day", "AGGREGATE", "*"),
        ("credit.positions.party", "SORT", "*"),
    }
