"""Events from outside cannot change runs and versions that floe reports itself."""

import json
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

import pytest
from openlineage.client.facet_v2 import parent_run
from sqlalchemy import select

from floe import clock
from floe.catalog.database import Catalog
from floe.catalog.datasets import create_dataset, find_dataset
from floe.catalog.drift import list_drift_claims
from floe.catalog.processes import find_process
from floe.catalog.recording import Recorder, record_group
from floe.catalog.runs import get_run
from floe.catalog.stable_names import OWN
from floe.catalog.tables import Change, DatasetVersion, RunInput
from floe.catalog.version_queries import list_versions
from floe.catalog.versions import EXTERNAL, READY, advance_version, reserve_version
from floe.errors import FloeError
from floe.events import InvalidEventError
from floe.events.ingest import read_claim
from tests.events.factory import FOREVER, LAKE, at, event, read, recently, run_id, written
from tests.events.state import state_of

TODAY = date(2026, 9, 1)
OWN_JOB: dict[str, Any] = {"job": "exposure", "namespace": "floe/risk"}


def record(catalog: Catalog, bodies: Sequence[bytes], *, own: bool = False) -> dict[int, FloeError]:
    claims = [read_claim(body, retention=FOREVER) for body in bodies]
    recorder = Recorder(catalog.store, own=own)
    try:
        return record_group(catalog, recorder, claims, clock.now())
    finally:
        recorder.close()


def write_own_version(catalog: Catalog) -> None:
    """Let floe write a version of credit.exposure and report the run."""
    with catalog.writing() as session:
        dataset = create_dataset(session, LAKE, "credit.exposure")
        version = reserve_version(
            session, dataset.dataset_id, TODAY, own=True, produced_by_run_id=run_id("own")
        )
        version.metadata_json = {OWN: {"mode": "replace"}}
        for state in ("PUBLISHING", READY):
            advance_version(session, version, state)
    output = written("credit.exposure", version="2026-09-01.1")
    assert not record(
        catalog, [event("COMPLETE", at(0), "own", outputs=[output], **OWN_JOB)], own=True
    )


def own_version(catalog: Catalog) -> tuple[Any, ...]:
    with catalog.reading() as session:
        dataset_id = find_dataset(session, "credit.exposure").dataset_id
        columns = DatasetVersion.__table__.c
        query = select(*columns).where(columns.dataset_id == dataset_id, columns.state != EXTERNAL)
        (row,) = session.execute(query).all()
        return tuple(row)


def own_run(catalog: Catalog) -> list[Any]:
    state = state_of(catalog)
    uuid = run_id("own")
    return [[row for row in state[name] if uuid in map(str, row)] for name in ("runs", "inputs")]


def foreign(kind: str, run: str = "foreign", **given: Any) -> bytes:
    return event(kind, at(60), run, "outsider", **given)


OUTPUTS = {
    "later": [written("credit.exposure", rows=0)],
    "with floe's tag": [written("credit.exposure", version="2026-09-01.1", rows=0)],
    "with a tag of its own": [written("credit.exposure", version="v9")],
    "under another name": [
        written("/lake/exposure", namespace="file", symlink=(LAKE, "credit.exposure"), rows=0)
    ],
}
CLAIMS = {
    **{f"a version {how}": foreign("COMPLETE", outputs=given) for how, given in OUTPUTS.items()},
    "a run of its own that fails": foreign("FAIL", outputs=OUTPUTS["later"]),
    "a reader of a version to come": foreign(
        "START", inputs=[read("credit.exposure", version="2026-09-01.2")]
    ),
}
OWN_RUN_CLAIMS = {
    "floe's run started": foreign("START", "own", inputs=[read("market.fx")]),
    "floe's run failed": foreign("FAIL", "own", error="not so"),
    "floe's run was aborted": foreign("ABORT", "own"),
    "floe's run wrote": foreign("COMPLETE", "own", outputs=[written("other")]),
    "floe's run wrote its own": foreign("COMPLETE", "own", outputs=OUTPUTS["later"]),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_claim_from_outside_does_not_change_what_floe_wrote(catalog: Catalog, claim: str) -> None:
    write_own_version(catalog)
    before = own_version(catalog), own_run(catalog)
    assert record(catalog, [CLAIMS[claim]]) == {}
    assert (own_version(catalog), own_run(catalog)) == before


@pytest.mark.parametrize("claim", OWN_RUN_CLAIMS)
def test_only_the_event_about_floes_own_run_is_rejected(catalog: Catalog, claim: str) -> None:
    write_own_version(catalog)
    before = own_version(catalog), own_run(catalog)
    neighbours = [foreign("COMPLETE", name, outputs=[written(name)]) for name in "abc"]
    wrong = record(catalog, [*neighbours[:2], OWN_RUN_CLAIMS[claim], neighbours[2]])
    assert list(wrong) == [2]
    assert "only floe can report it" in str(wrong[2])
    assert (own_version(catalog), own_run(catalog)) == before
    with catalog.reading() as session:
        for name in "abc":
            assert get_run(session, run_id(name)).status == "SUCCESS"
        own = get_run(session, run_id("own")).run_id
        assert not session.scalars(select(RunInput).where(RunInput.run_id == own)).all()
        failed = select(Change).where(Change.run_id == own, Change.kind == "RUN_FAILED")
        assert not session.scalars(failed).all()


def test_floes_report_of_its_run_wins_over_an_earlier_one_from_outside(
    catalog: Catalog,
) -> None:
    assert record(catalog, [foreign("COMPLETE", "own")]) == {}
    assert record(catalog, [event("FAIL", at(5), "own", **OWN_JOB)], own=True) == {}
    with catalog.reading() as session:
        run = get_run(session, run_id("own"))
        assert (run.status, run.saw_success) == ("FAILED", False)
        assert run.process_id == find_process(session, "floe/risk/exposure").process_id


def test_a_claimed_parent_that_ends_does_not_make_floes_run_lost(catalog: Catalog) -> None:
    facet = parent_run.ParentRunFacet(
        parent_run.Run(run_id("parent")), parent_run.Job("dagster", "risk/nightly")
    )
    started = event("START", at(0), "own", facets={"parent": facet}, **OWN_JOB)
    assert record(catalog, [started], own=True) == {}
    assert record(catalog, [foreign("COMPLETE", "parent")]) == {}
    with catalog.reading() as session:
        assert get_run(session, run_id("own")).status == "STARTED"


def test_a_foreign_writer_is_one_drift_claim_however_often_it_writes(catalog: Catalog) -> None:
    write_own_version(catalog)
    for run in ("one", "two"):
        assert (
            record(catalog, [foreign("COMPLETE", run, outputs=OUTPUTS["with a tag of its own"])])
            == {}
        )
    with catalog.reading() as session:
        (claim,) = list_drift_claims(session)
        assert (claim.kind, claim.status) == ("FOREIGN_VERSION", "OPEN")
        assert (claim.dataset, claim.subject) == ("lake/credit.exposure", "AUTOSYS/outsider")
        assert claim.detail["version"] == "v9"


def test_a_tag_that_an_event_claims_to_have_read_is_skipped(catalog: Catalog) -> None:
    write_own_version(catalog)
    assert record(catalog, [CLAIMS["a reader of a version to come"]]) == {}
    with catalog.writing() as session:
        dataset_id = find_dataset(session, "credit.exposure").dataset_id
        assert reserve_version(session, dataset_id, TODAY, own=True).version_tag == "2026-09-01.3"


def test_datasets_that_others_deliver_are_still_announced_from_outside(catalog: Catalog) -> None:
    with catalog.writing() as session:
        create_dataset(session, LAKE, "market.fx")
    for minutes, run in ((0, "first"), (1, "again")):
        body = event("COMPLETE", at(minutes), run, outputs=[written("market.fx")])
        assert record(catalog, [body]) == {}
    with catalog.reading() as session:
        versions = list_versions(session, find_dataset(session, "market.fx").dataset_id)
        assert [version.state for version in versions] == ["READY", "SUPERSEDED"]
        assert list_drift_claims(session) == []


def ahead(**delta: float) -> str:
    return (clock.now() + timedelta(**delta)).isoformat()


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"eventTime": "2199-01-01T00:00:00Z"}, "$.eventTime"),
        ({"eventTime": ahead(hours=25)}, "$.eventTime"),
        ({"run": {"runId": "r", "startTime": ahead(days=2)}}, "$.run.startTime"),
        ({"run": {"runId": "r", "endTime": ahead(days=2)}}, "$.run.endTime"),
    ],
)
def test_a_time_more_than_a_day_in_the_future_is_rejected(
    change: dict[str, Any], path: str
) -> None:
    body = {**json.loads(event("COMPLETE", recently(0))), **change}
    with pytest.raises(InvalidEventError, match="more than a day in the future") as refused:
        read_claim(json.dumps(body).encode())
    assert [reason.path for reason in refused.value.reasons] == [path]


def test_a_clock_that_is_slightly_fast_is_accepted() -> None:
    body = {**json.loads(event("COMPLETE", recently(0))), "eventTime": ahead(hours=23)}
    assert read_claim(json.dumps(body).encode()).type == "run.complete"


@pytest.mark.parametrize("namespace", ["floe", "floe/risk"])
def test_a_job_in_floes_namespace_is_rejected_from_outside(namespace: str) -> None:
    body = event("COMPLETE", recently(0), namespace=namespace)
    with pytest.raises(InvalidEventError, match=r"\$\.job\.namespace: .* reserved"):
        read_claim(body, foreign=True)
    assert read_claim(body).process_key == f"{namespace}/exposure"
    assert read_claim(event("COMPLETE", recently(0), namespace="floester"), foreign=True)


def test_a_step_of_floes_job_is_rejected_from_outside() -> None:
    body = json.loads(event("COMPLETE", recently(0), job="exposure.sql.1", namespace="dbt"))
    kind = {"processingType": "BATCH", "integration": "DBT", "jobType": "SQL"}
    body["job"]["facets"] = {"jobType": kind}
    parent = {"run": {"runId": "r"}, "job": {"namespace": "floe/risk", "name": "exposure"}}
    body["run"]["facets"] = {"parent": parent}
    with pytest.raises(InvalidEventError, match=r"\$\.run\.facets\.parent\.job\.namespace"):
        read_claim(json.dumps(body).encode(), foreign=True)


def test_symlinks_of_an_output_without_claims_are_accepted() -> None:
    body = json.loads(with_datasets(linked("t", 1)))
    body["inputs"] = [linked("s", 2)]
    kind = {"processingType": "BATCH", "integration": "DBT", "jobType": "TEST"}
    body["job"]["facets"] = {"jobType": kind}
    (dataset,) = read_claim(json.dumps(body).encode()).datasets
    assert len(dataset.symlinks) == 2


def linked(name: str, count: int) -> dict[str, Any]:
    identifiers = [{"namespace": "file", "name": f"/{name}/{n}"} for n in range(count)]
    return {"namespace": LAKE, "name": name, "facets": {"symlinks": {"identifiers": identifiers}}}


def with_datasets(*datasets: dict[str, Any]) -> bytes:
    body = json.loads(event("COMPLETE", recently(0)))
    return json.dumps({**body, "outputs": datasets}).encode()


def test_the_symlinks_of_a_dataset_and_of_an_event_are_limited() -> None:
    assert len(read_claim(with_datasets(linked("t", 100))).datasets[0].symlinks) == 100
    with pytest.raises(FloeError, match=r"\$\.outputs\[1\].*has 101 symlinks; at most 100"):
        read_claim(with_datasets(linked("s", 1), linked("t", 101)))
    many = [linked(f"t{n}", 100) for n in range(11)]
    assert read_claim(with_datasets(*many[:10]))
    with pytest.raises(FloeError, match=r"\$: has 1,100 symlinks; at most 1,000"):
        read_claim(with_datasets(*many))
