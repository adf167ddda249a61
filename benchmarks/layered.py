"""A catalog of a layered graph of jobs, filled through floe's own event door."""

import random
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from floe.catalog.database import Catalog
from floe.events.ingest import EventDoor, read_claim

# 2,500 jobs that ran twenty times, each with a START and a COMPLETE: 100,000 events.
LAYERS, WIDTH, COLUMNS, RUNS = 10, 250, 10, 20
# Reference data that a part of the first layer reads, and how far from its own position a job
# reads its inputs: five edges reach some 600 nodes, twenty almost all.
HUBS, NEAR = 4, 100
START = datetime(2026, 1, 1, tzinfo=UTC)
NAMESPACE = "postgres://bench:5432"
GROUP = 200


@dataclass(frozen=True)
class Job:
    """A job that reads two datasets and writes one or two."""

    name: str
    inputs: tuple[str, str]
    outputs: tuple[str, ...]


def make_jobs(seed: int = 7) -> list[Job]:
    """Layers of jobs that read from up to three layers before them, near their own position."""
    chance, jobs = random.Random(seed), []
    levels: list[list[list[str]]] = [
        [[f"raw.t{place:03d}_{n}" for n in range(2)] for place in range(WIDTH)]
    ]
    for layer in range(1, LAYERS + 1):
        level: list[list[str]] = []
        for place in range(WIDTH):

            def pick(from_level: list[list[str]], at: int = place) -> str:
                near = from_level[(at + chance.randint(-NEAR, NEAR)) % WIDTH]
                return chance.choice(near)

            first = pick(levels[-1]) if layer > 1 else f"ref.hub{place * HUBS // WIDTH}"
            second = first
            while second == first:
                second = pick(levels[-chance.randint(1, min(3, len(levels)))])
            outputs = [f"l{layer:02d}.t{place:03d}_{n}" for n in range(1 + (chance.random() < 0.4))]
            level.append(outputs)
            jobs.append(Job(f"etl.l{layer:02d}.j{place:03d}", (first, second), tuple(outputs)))
        levels.append(level)
    return jobs


def make_events(jobs: Sequence[Job]) -> Iterator[bytes]:
    """A START and a COMPLETE for every run of every job."""
    for day in range(RUNS):
        for number, job in enumerate(jobs):
            run_id = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{job.name}/{day}"))
            started = START + timedelta(days=day, seconds=number)
            for kind, at in (("START", started), ("COMPLETE", started + timedelta(seconds=1))):
                yield msgspec.json.encode(_event(job, kind, at, run_id))


def _event(job: Job, kind: str, at: datetime, run_id: str) -> dict[str, Any]:
    nominal = {"nominalStartTime": at.replace(hour=0, minute=0, second=0).isoformat()}
    return {
        "eventType": kind,
        "eventTime": at.isoformat(),
        "producer": "urn:bench",
        "run": {"runId": run_id, "facets": {"nominalTime": nominal}},
        "job": {
            "namespace": "bench",
            "name": job.name,
            "facets": {"jobType": {"integration": "BENCH"}},
        },
        "inputs": [_dataset(name) for name in job.inputs],
        "outputs": [_dataset(name, job if kind == "COMPLETE" else None) for name in job.outputs],
    }


def _dataset(name: str, made_by: Job | None = None) -> dict[str, Any]:
    fields = [{"name": f"c{n:02d}", "type": "BIGINT"} for n in range(COLUMNS)]
    facets: dict[str, Any] = {"schema": {"fields": [*fields, {"name": name, "type": "VARCHAR"}]}}
    part = {"namespace": NAMESPACE, "name": name, "facets": facets}
    if made_by is not None:
        facets["columnLineage"] = {
            "fields": {
                f"c{n:02d}": {
                    "inputFields": [
                        {
                            "namespace": NAMESPACE,
                            "name": made_by.inputs[n % 2],
                            "field": f"c{n:02d}",
                        }
                    ]
                }
                for n in range(COLUMNS)
            }
        }
        part["outputFacets"] = {"outputStatistics": {"rowCount": 1000, "size": 100_000}}
    return part


def fill(catalog: Catalog, jobs: Sequence[Job]) -> int:
    """Send all events through the door; return how many there were."""
    door, count, group = EventDoor(catalog), 0, []
    for body in make_events(jobs):
        group.append(read_claim(body))
        count += 1
        if len(group) == GROUP:
            assert not door.submit(group).result()
            group = []
    if group:
        assert not door.submit(group).result()
    door.close()
    return count
