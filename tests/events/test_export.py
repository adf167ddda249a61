"""Stored events come back as they came, and make the same catalog again."""

import json
import tracemalloc
from io import BytesIO
from pathlib import Path

from floe import clock
from floe.catalog.database import Catalog, open_catalog
from floe.catalog.recording import Recorder, record_group
from floe.catalog.run_events import EventFilter
from floe.events.bulk import import_events
from floe.events.export import export_events
from floe.events.ingest import read_claim
from tests.events.factory import at, event, read, run_id, written
from tests.events.state import state_of

DAY = [
    event("START", at(0), "fx", "load_fx"),
    event("COMPLETE", at(1), "fx", "load_fx", outputs=[written("market.fx", columns=["ccy"])]),
    event(
        "COMPLETE",
        at(60 * 30),
        "exposure",
        inputs=[read("market.fx")],
        outputs=[written("credit.exposure", from_columns={"amount": ("market.fx", "rate")})],
    ),
    event("FAIL", at(2), "broken", error="no feed"),
]


def record(catalog: Catalog, bodies: list[bytes]) -> None:
    recorder = Recorder(catalog.store)
    wrong = record_group(catalog, recorder, [read_claim(body) for body in bodies], clock.now())
    recorder.close()
    assert wrong == {}


def exported(catalog: Catalog, wanted: EventFilter | None = None) -> list[bytes]:
    out = BytesIO()
    report = export_events(catalog, wanted or EventFilter(), out)
    lines = out.getvalue().splitlines()
    assert report.events == len(lines)
    return lines


def test_bodies_come_back_byte_for_byte_by_their_time(catalog: Catalog) -> None:
    record(catalog, DAY)
    assert exported(catalog) == [DAY[0], DAY[1], DAY[3], DAY[2]]


def test_a_small_body_comes_back_too(catalog: Catalog) -> None:
    small = b'{"eventTime":"2026-09-01T06:00:00Z","job":{"namespace":"a","name":"b"}}'
    record(catalog, [small])
    assert exported(catalog) == [small]


def test_only_the_wanted_events_come(catalog: Catalog) -> None:
    record(catalog, DAY)
    assert exported(catalog, EventFilter(process_key="AUTOSYS/load_fx")) == DAY[:2]
    assert exported(catalog, EventFilter(since=at(60))) == [DAY[2]]


def test_a_body_that_came_on_several_lines_is_put_on_one(catalog: Catalog) -> None:
    pretty = json.dumps(json.loads(DAY[0]), indent=2).encode()
    record(catalog, [pretty])
    out = BytesIO()
    assert export_events(catalog, EventFilter(), out).joined == 1
    (line,) = out.getvalue().splitlines()
    assert json.loads(line) == json.loads(pretty)


def test_an_export_makes_the_same_catalog_again(
    catalog: Catalog, sqlite_template: Path, tmp_path: Path
) -> None:
    record(catalog, DAY)
    file = tmp_path / "events.ndjson"
    with file.open("wb") as out:
        export_events(catalog, EventFilter(), out)
    copy = tmp_path / "copy.db"
    copy.write_bytes(sqlite_template.read_bytes())
    second = open_catalog(f"sqlite:///{copy}")
    import_events(second, file, historical=False)
    again = tmp_path / "again.ndjson"
    with again.open("wb") as out:
        export_events(second, EventFilter(), out)
    assert again.read_bytes() == file.read_bytes()
    if catalog.store.name == "sqlite":
        assert state_of(second) == state_of(catalog)
    second.close()


def test_a_large_export_stays_small_in_memory(catalog: Catalog) -> None:
    output = written("credit.exposure", columns=[f"column_{n}" for n in range(300)])
    one = event("COMPLETE", at(0), "run", outputs=[output])
    for number in range(10):
        names = (f"{number}.{place}" for place in range(100))
        record(
            catalog,
            [one.replace(run_id("run").encode(), run_id(name).encode()) for name in names],
        )
    file = Nowhere()
    tracemalloc.start()
    export_events(catalog, EventFilter(), file)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert file.size > 15_000_000
    assert peak < 10_000_000


class Nowhere:
    """Counts what is written to it."""

    def __init__(self) -> None:
        self.size = 0

    def write(self, content: bytes) -> int:
        self.size += len(content)
        return len(content)
