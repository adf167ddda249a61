"""Give stored events back: the bodies as they came, one a line, however many there are."""

from dataclasses import dataclass
from typing import Protocol

from floe.catalog import Catalog
from floe.catalog.events import stream_bodies
from floe.catalog.run_events import EventFilter
from floe.events.payload import decompress

_ONE_LINE = bytes.maketrans(b"\r\n", b"  ")


class Sink(Protocol):
    """Takes bytes: a file, packed or plain."""

    def write(self, content: bytes, /) -> int:
        """Take some."""


@dataclass
class ExportReport:
    """How many events were written, and how many of them had come on several lines."""

    events: int = 0
    joined: int = 0


def export_events(catalog: Catalog, wanted: EventFilter, out: Sink) -> ExportReport:
    """Write events by their time.

    A body that came on several lines is put on one. Between its values a line break and a blank
    mean the same, and within them JSON has none.
    """
    report = ExportReport()
    with catalog.reading() as session:
        for stored in stream_bodies(session, wanted):
            body = decompress(stored.payload, stored.codec)
            if b"\n" in body or b"\r" in body:
                body = body.translate(_ONE_LINE)
                report.joined += 1
            out.write(body + b"\n")
            report.events += 1
    return report
