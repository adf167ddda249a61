"""Traced lineage goes out as a facet, and comes back from the catalog."""

import json

from openlineage.client.facet_v2 import column_lineage_dataset

from floe import clock
from floe.catalog.column_lineage import walk_columns
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


def test_a_column_from_nowhere_is_there_and_an_unknown_one_is_not() -> None:
    assert facet_of("select 1 as one, nothing as lost from fx") == {
        "fields": {"one": {"inputFields": []}}
    }


def test_where_nothing_is_known_there_is_no_facet() -> None:
    assert to_facet(OutputLineage(unknown="a function"), DATASETS) is None


def test_two_versions_of_one_dataset_are_one_source() -> None:
    twice = {"p": (LAKE, "credit.positions"), "c": (LAKE, "credit.positions")}
    sql = "select p.party + c.party as a from p cross join c"
    facet = to_facet(trace([SqlStep("out", sql)], INPUTS, {"out": ()})["out"], twice)
    assert facet is not None
    assert len(facet["fields"]["a"]["inputFields"]) == 1


def test_openlineages_own_client_takes_the_facet() -> None:
    facet = facet_of(SQL)
    fields = facet["fields"]
    assert isinstance(fields, dict)
    for entry in fields.values():
        for one in entry["inputFields"]:
            uses = [column_lineage_dataset.Transformation(**use) for use in one["transformations"]]
            column_lineage_dataset.InputField(**{**one, "transformations": uses})


def test_the_catalog_reads_the_kinds_out_of_the_facet(catalog: Catalog) -> None:
    body = json.loads(
        event(
            "COMPLETE",
            at(0),
            inputs=[read(name) for _, name in DATASETS.values()],
            outputs=[written("credit.exposure")],
        )
    )
    body["outputs"][0]["facets"]["columnLineage"] = facet_of(SQL)
    recorder = Recorder(catalog.store)
    claim = read_claim(json.dumps(body).encode(), historical=False)
    assert record_group(catalog, recorder, [claim], clock.now()) == {}
    recorder.close()
    with catalog.reading() as session:
        found = walk_columns(session, find_dataset(session, "credit.exposure"), depth=1)
        names = {(one.dataset_id, one.column): one.dataset for one in found.columns}
        edges = {
            (f"{names[edge.source]}.{edge.source.column}", edge.kind, edge.target.column)
            for edge in found.edges
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
