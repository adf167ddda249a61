"""Events of a nightly batch: layers of jobs that read two datasets and write one or two.

The same arguments give the same bytes. Each run of a job is a START and a COMPLETE, with schemas
of ten columns, column lineage and row counts, like those of the Spark listener.
"""

import json
import random
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

SPEC = "https://openlineage.io/spec"
PRODUCER = "https://example.com/floe/benchmarks"
KINDS = ("BIGINT", "VARCHAR", "TIMESTAMP", "DOUBLE", "BOOLEAN")
FIRST = datetime(2026, 1, 1, tzinfo=UTC)
NAMESPACE, STORE = "night", "postgres://warehouse:5432"


class Night:
    """A graph of jobs in layers, each reading near its own position in the preceding layers."""

    def __init__(
        self, jobs: int = 2000, layers: int = 20, columns: int = 10, seed: int = 1
    ) -> None:
        self._columns = columns
        self.jobs: list[tuple[str, list[str], list[str]]] = []
        dice, width = random.Random(seed), jobs // layers
        rows = [[[f"raw.feed_{place:05d}_{part}" for part in "ab"] for place in range(width)]]
        for layer in range(1, layers + 1):
            made = []
            for place in range(width):
                number = len(self.jobs)
                near = rows[-1][(place + dice.randint(-2, 2)) % width]
                far = rows[-dice.randint(1, min(3, len(rows)))][
                    (place + dice.randint(-2, 2)) % width
                ]
                inputs = sorted({dice.choice(near), dice.choice(far)})
                outputs = [
                    f"l{layer:02d}.t{number:05d}_{part}" for part in range(1 + (number % 5 < 2))
                ]
                self.jobs.append((f"l{layer:02d}.job_{number:05d}", inputs, outputs))
                made.append(outputs)
            rows.append(made)

    def bodies(self, days: int = 1, first_day: int = 0) -> Iterator[bytes]:
        """Return the events of some nights, in order of time."""
        for day in range(first_day, first_day + days):
            for number, job in enumerate(self.jobs):
                start = FIRST + timedelta(days=day, seconds=number)
                run = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{job[0]}/{day}"))
                for kind, moment in (
                    ("START", start),
                    ("COMPLETE", start + timedelta(seconds=0.5)),
                ):
                    event = self._event(kind, moment, start, run, job)
                    yield json.dumps(event, separators=(",", ":")).encode()

    def _event(
        self,
        kind: str,
        at: datetime,
        start: datetime,
        run: str,
        job: tuple[str, list[str], list[str]],
    ) -> dict[str, Any]:
        name, inputs, outputs = job
        sources = inputs if kind == "COMPLETE" else []
        return {
            "eventType": kind,
            "eventTime": _time(at),
            "producer": PRODUCER,
            "schemaURL": f"{SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent",
            "run": {
                "runId": run,
                "facets": {"nominalTime": _facet("NominalTime", nominalStartTime=_time(start))},
            },
            "job": {
                "namespace": NAMESPACE,
                "name": name,
                "facets": {
                    "sql": _facet(
                        "SQLJob", query=f"INSERT INTO {outputs[0]} SELECT * FROM {inputs[0]}"
                    ),
                    "jobType": _facet("JobType", processingType="BATCH", integration="BENCH"),
                },
            },
            "inputs": [self._dataset(one) for one in inputs],
            "outputs": [self._dataset(one, sources) for one in outputs],
        }

    def _dataset(self, name: str, sources: list[str] | None = None) -> dict[str, Any]:
        fields = [
            {"name": f"c{n:02d}", "type": KINDS[n % 5], "description": f"column {n} of {name}"}
            for n in range(self._columns)
        ]
        facets = {
            "schema": _facet("Schema", fields=fields),
            "dataSource": _facet("Datasource", name=STORE, uri=STORE),
        }
        dataset: dict[str, Any] = {"namespace": STORE, "name": name, "facets": facets}
        if sources:
            facets["columnLineage"] = _facet("ColumnLineage", fields=self._lineage(sources))
            dataset["outputFacets"] = {
                "outputStatistics": _facet("OutputStatistics", rowCount=1000, size=100_000)
            }
        return dataset

    def _lineage(self, sources: list[str]) -> dict[str, Any]:
        direct = [{"type": "DIRECT", "subtype": "IDENTITY", "description": "", "masking": False}]
        return {
            f"c{n:02d}": {
                "inputFields": [
                    {
                        "namespace": STORE,
                        "name": sources[k % len(sources)],
                        "field": f"c{(n + k) % self._columns:02d}",
                        "transformations": direct,
                    }
                    for k in range(1 + n % 2)
                ]
            }
            for n in range(self._columns)
        }


def _facet(name: str, /, **content: Any) -> dict[str, Any]:
    return {"_producer": PRODUCER, "_schemaURL": f"{SPEC}/facets/1-0-0/{name}Facet.json", **content}


def _time(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
