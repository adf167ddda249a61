"""Recording events: any order, repetition and grouping gives the same state."""

import random
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from floe import clock
from floe.catalog.changes import list_changes
from floe.catalog.database import Catalog, open_catalog
from floe.catalog.datasets import find_dataset
from floe.catalog.edges import list_consumers, list_producers
from floe.catalog.recording import Recorder, record_group
from floe.catalog.runs import list_runs
from floe.catalog.version_queries import list_versions
from floe.events.ingest import read_claim
from floe.spec.dates import DEFAULT_RULES, DateRules
from tests.events.factory import LAKE, at, child_of, event, read, run_id, written
from tests.events.state import state_of

# A day as real clients report it: a run that completes, one that fails after it had completed, a
# rerun, a schema and a column lineage that change and change back, owners and descriptions.
DAY = [
    event("START", at(0), "fx", "load_fx"),
    event(
        "COMPLETE",
        at(1),
        "fx",
        "load_fx",
        outputs=[written("market.fx", columns=["ccy", "rate"], rows=10, description="rates")],
    ),
    event("START", at(2), "exp1", inputs=[read("market.fx", columns=["ccy", "rate"])]),
    event("RUNNING", at(3), "exp1", inputs=[read("market.fx")], nominal=at(0)),
    event(
        "COMPLETE",
        at(4),
        "exp1",
        inputs=[read("market.fx")],
        outputs=[
            written(
                "credit.exposure",
                columns=["client", "amount"],
                rows=5,
                from_columns={"amount": ("market.fx", "rate")},
                owner="team:credit",
            )
        ],
        nominal=at(0),
    ),
    event("FAIL", at(5), "exp1", error="disk full"),
    event("START", at(6), "exp2", nominal=at(0)),
    event(
        "COMPLETE",
        at(7),
        "exp2",
        inputs=[read("market.fx", version="2026-09-01.7"), read("ref.clients", version="v3")],
        outputs=[
            written(
                "credit.exposure",
                columns=["client"],
                rows=6,
                from_columns={"client": ("ref.clients", "id")},
                owner="team:risk",
            )
        ],
        nominal=at(0),
    ),
    event(
        "COMPLETE",
        at(60 * 24),
        "exp3",
        outputs=[written("credit.exposure", columns=["client", "amount"], version="2026-09-02")],
    ),
    event("ABORT", at(9), "exp4"),
    event("FAIL", at(10), "exp5", error="no rates"),
    # A night whose children end, never end, end late, and have children of their own; and three
    # dates and partitions that a run wrote at once.
    event("START", at(11), "night", "night"),
    event("START", at(12), "lost", "scan", facets=child_of("night")),
    event("START", at(13), "lost below", "read", facets=child_of("lost")),
    event("START", at(14), "late", "load", facets=child_of("night")),
    event("COMPLETE", at(15), "night", "night"),
    event("FAIL", at(16), "late", "load", facets=child_of("night"), error="late"),
    event("START", at(17), "still lost", "scan", facets=child_of("night")),
    event("COMPLETE", at(18), "dates", outputs=[written("/in/fx_20260901.csv")]),
    event("COMPLETE", at(19), "dates", outputs=[written("/in/fx_20260902.csv")]),
    event("COMPLETE", at(20), "again", outputs=[written("/in/region=EU/fx_20260901.csv")]),
    event("COMPLETE", at(21), "newer", outputs=[written("/in/fx_20260901.csv")]),
]


class Imported(bytes):
    """Return a historical claim of an event."""


def record(
    catalog: Catalog,
    bodies: Sequence[bytes],
    sizes: Sequence[int],
    dates: DateRules = DEFAULT_RULES,
) -> None:
    """Record events in groups of these sizes, the last size again and again."""
    recorder, start, sizes = Recorder(catalog.store, dates), 0, list(sizes)
    while start < len(bodies):
        size = sizes.pop(0) if len(sizes) > 1 else sizes[0]
        claims = [
            read_claim(body, historical=isinstance(body, Imported))
            for body in bodies[start : start + size]
        ]
        assert record_group(catalog, recorder, claims, clock.now()) == {}
        start += size
    recorder.close()


def test_any_order_and_repetition_gives_the_same_state(catalog: Catalog, wanted: object) -> None:
    shuffled = [*DAY, *map(Imported, DAY)]
    random.Random(7).shuffle(shuffled)
    record(catalog, shuffled, [3])
    assert state_of(catalog) == wanted


@pytest.fixture(scope="module")
def wanted(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> object:
    catalog = fresh(sqlite_template, tmp_path_factory.mktemp("wanted"))
    record(catalog, DAY, [1])
    state = state_of(catalog)
    catalog.close()
    return state


def fresh(template: Path, folder: Path) -> Catalog:
    copy = folder / "catalog.db"
    copy.write_bytes(template.read_bytes())
    return open_catalog(f"sqlite:///{copy}")


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    order=st.permutations(range(len(DAY))),
    again=st.lists(st.integers(0, len(DAY) - 1), max_size=6),
    imported=st.lists(st.integers(0, len(DAY) - 1), max_size=6),
    sizes=st.lists(st.integers(1, 8), min_size=1, max_size=6),
)
def test_the_state_never_depends_on_order_repetition_or_grouping(
    order: list[int],
    again: list[int],
    imported: list[int],
    sizes: list[int],
    wanted: object,
    sqlite_template: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    catalog = fresh(sqlite_template, tmp_path_factory.mktemp("shuffled"))
    history = [Imported(DAY[index]) for index in imported]
    record(catalog, [*history, *(DAY[index] for index in (*order, *again))], sizes)
    assert state_of(catalog) == wanted
    catalog.close()


def statuses(catalog: Catalog) -> dict[str, str]:
    with catalog.reading() as session:
        return {run.run_uuid: run.status for run in list_runs(session)}


NIGHT = [
    event("START", at(0), "night", "night"),
    event("START", at(1), "child", "scan", facets=child_of("night")),
    event("START", at(2), "below", "read", facets=child_of("child")),
    event("FAIL", at(3), "night", "night"),
]


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 0, 1, 2], [2, 3, 1, 0], [3, 2, 1, 0]])
def test_children_without_an_end_are_lost_when_their_parent_ends(
    catalog: Catalog, order: list[int]
) -> None:
    record(catalog, [NIGHT[index] for index in order], [1])
    lost = {run_id("child"): "LOST", run_id("below"): "LOST"}
    assert statuses(catalog) == {run_id("night"): "FAILED", **lost}
    with catalog.reading() as session:
        # Only the parent failed: a lost run causes no retry and no alert.
        changes = [change for change in list_changes(session, 0) if change.kind == "RUN_FAILED"]
        assert len(changes) == 1


def test_an_end_that_arrives_later_wins_over_lost(catalog: Catalog) -> None:
    end = event(
        "COMPLETE", at(9), "child", "scan", outputs=[written("t")], facets=child_of("night")
    )
    record(catalog, [*NIGHT, end, NIGHT[1]], [1])
    assert statuses(catalog)[run_id("child")] == "SUCCESS"
    with catalog.reading() as session:
        (version,) = list_versions(session, find_dataset(session, "t").dataset_id)
        assert version.state == "READY"


LINKED = [
    event("COMPLETE", at(0), "a", "spark", outputs=[written("/lake/exposure", namespace="file")]),
    event("COMPLETE", at(1), "b", "report", inputs=[read("credit.exposure")]),
    event(
        "COMPLETE",
        at(2),
        "c",
        "spark",
        outputs=[
            written("/lake/exposure", namespace="file", symlink=(LAKE, "credit.exposure"), rows=3)
        ],
    ),
    event("COMPLETE", at(3), "d", "report", inputs=[read("credit.exposure")]),
]


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1], [1, 3, 0, 2]])
def test_two_names_of_a_dataset_become_one(catalog: Catalog, order: list[int]) -> None:
    record(catalog, [LINKED[index] for index in order], [1])
    with catalog.reading() as session:
        by_path = find_dataset(session, "file//lake/exposure")
        assert find_dataset(session, "lake/credit.exposure").dataset_id == by_path.dataset_id
        writers = [process.name for process in list_producers(session, by_path.dataset_id)]
        readers = [process.name for process in list_consumers(session, by_path.dataset_id)]
        assert (writers, readers) == (["spark"], ["report"])
        states = sorted(version.state for version in list_versions(session, by_path.dataset_id))
        assert states == ["READY", "SUPERSEDED"]


@pytest.mark.parametrize("dated", [at(0), at(24 * 60)], ids=["same date", "another date"])
def test_a_producers_tag_that_looks_like_one_of_floes_is_skipped(
    catalog: Catalog, dated: datetime
) -> None:
    events = [
        event(
            "COMPLETE",
            at(0),
            "theirs",
            outputs=[written("t", version="2026-09-01.2")],
            facets={"floe": {"businessDate": dated.date().isoformat()}},
        ),
        *(event("COMPLETE", at(n), f"run {n}", outputs=[written("t")]) for n in (1, 2, 3)),
    ]
    record(catalog, events, [1, 1, 2])
    with catalog.reading() as session:
        versions = list_versions(session, find_dataset(session, "t").dataset_id)
        tags = {version.version_tag for version in versions}
    assert len(tags) == len(events)
    assert "2026-09-01.2" in tags
