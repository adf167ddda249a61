"""What runs read: the versions they name, or none where they name none."""

from collections.abc import Iterable
from datetime import date, datetime

from floe.catalog.recording.claims import DatasetClaim
from floe.catalog.recording.merges import EXTERNAL_VERSIONS, INPUTS
from floe.catalog.recording.parts import tag_of
from floe.catalog.recording.scope import Recording
from floe.catalog.stores.merging import Lookup
from floe.catalog.versions import EXTERNAL

NO_VERSION = ""
TAGGED_VERSIONS = Lookup(
    "dataset_version",
    ("dataset_id", "version_tag", "dataset_version_id"),
    by=("dataset_id", "version_tag"),
)
Tagged = tuple[int, str]


def record_inputs(recording: Recording) -> None:
    """Write the inputs of runs. A version that is unknown here is noted as EXTERNAL."""
    read: set[tuple[str, int, str]] = set()
    tagged: dict[Tagged, tuple[date | None, datetime]] = {}
    for claim in recording.claims:
        if claim.run is None:
            continue
        for dataset in claim.datasets:
            if dataset.reads:
                number = recording.dataset_id(dataset.namespace, dataset.name)
                tag = tag_of(recording, dataset) or NO_VERSION
                read.add((claim.run.run_uuid, number, tag))
                if tag:
                    day = _date_read(recording, dataset)
                    _remember(tagged, (number, tag), day, claim.at)
    numbers = _version_numbers(recording, tagged) if tagged else {}
    recording.versions_read.update(numbers)
    rows = [(run, number, tag, numbers.get((number, tag))) for run, number, tag in read]
    recording.merge(INPUTS, sorted(rows, key=lambda row: row[:3]))


def _date_read(recording: Recording, dataset: DatasetClaim) -> date | None:
    dated = recording.dated(dataset.namespace, dataset.name)
    return dataset.version.business_date or (dated.business_date if dated else None)


def _remember(
    tagged: dict[Tagged, tuple[date | None, datetime]], key: Tagged, day: date | None, at: datetime
) -> None:
    if key not in tagged or at < tagged[key][1]:
        tagged[key] = (day, at)


def _version_numbers(
    recording: Recording, tagged: dict[Tagged, tuple[date | None, datetime]]
) -> dict[Tagged, int]:
    nothing = (None,) * 5
    rows = [
        (
            *key,
            recording.day(day),
            0,
            EXTERNAL,
            *nothing,
            recording.moment(at),
            "N",
            None,
            None,
        )
        for key, (day, at) in sorted(tagged.items())
    ]
    recording.merge(EXTERNAL_VERSIONS, rows)
    return _find(recording, tagged)


def _find(recording: Recording, tagged: Iterable[Tagged]) -> dict[Tagged, int]:
    wanted = set(tagged)
    numbers, tags = {number for number, _ in wanted}, {tag for _, tag in wanted}
    rows = recording.find(TAGGED_VERSIONS, numbers, tags).fetchall()
    return {(number, tag): found for number, tag, found in rows if (number, tag) in wanted}
