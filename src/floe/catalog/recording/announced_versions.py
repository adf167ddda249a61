"""List the versions that events announce: one per date and partition written.

The business date of a version is the first of these that is known:

1. the business date in floe's own run facet;
2. the version, if it starts with a date;
3. the locations of the subset facet;
4. the path of the version;
5. the dates in the dataset's name;
6. the nominal time of the run;
7. the time of the event.

3 to 5 are parsed with the `location` that the dataset declares, else with the date rules. If a run
writes several dates of a dataset, 1 and 2 cannot be right for all of them, and 3 to 5 win.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import NamedTuple

from floe.catalog.recording.claims import DatasetClaim, EventClaim, Seen, VersionClaim
from floe.catalog.recording.facets import read_object
from floe.catalog.recording.transaction import Recording
from floe.catalog.tables.table_base import MAX_PATH_LENGTH
from floe.spec.dates import SEPARATOR, Dated, Part, below, location_date

NO_PART = Part()
PLACEHOLDER = "{business_date}"


@dataclass(slots=True)
class Announced:
    """A version that an event announces."""

    dataset_id: int
    run_uuid: str
    at: datetime
    claim: VersionClaim
    tag: str | None
    path: str | None
    rows: int | None
    size: int | None
    checksum: str | None
    schema_hash: str | None
    business_date: date | None
    # The partition without its date; and whether the event names this part of the data.
    partition: str | None
    is_part: bool
    nominal_at: datetime | None
    historical: bool
    process_id: int


class _Written(NamedTuple):
    """A part of a dataset that an event wrote, and where."""

    dataset: DatasetClaim
    part: Part
    path: str | None
    # Statistics and checksum cover all parts of an output, so only a single part has them.
    is_whole: bool


def has_parts(recording: Recording) -> bool:
    """Tell whether any output may be only a part of its dataset, which is rare."""
    return any(
        dataset.writes
        and (
            dataset.version.locations
            or dataset.version.path
            or recording.dates.fold(dataset.name) is not None
        )
        for claim in recording.claims
        for dataset in claim.datasets
    )


def declared_location(declaration: str | None) -> str | None:
    """Return the declared location if it contains the date placeholder."""
    if not declaration or PLACEHOLDER not in declaration:
        return None
    location = read_object(declaration).get("location")
    return location if isinstance(location, str) and PLACEHOLDER in location else None


def list_announced(recording: Recording, locations: Mapping[int, str]) -> list[Announced]:
    """List the announced versions of a group without duplicates, oldest first.

    `locations` are those that datasets declare.
    """
    newest: dict[tuple[object, ...], Announced] = {}
    for claim in recording.claims:
        if claim.run is None or not claim.run.seen & Seen.COMPLETED:
            continue
        for version in _announce(recording, claim, claim.run.run_uuid, locations):
            day = version.is_part and version.business_date
            key = (version.dataset_id, version.run_uuid, day, version.partition)
            known = newest.get(key)
            if known is not None:
                version.historical = known.historical = version.historical and known.historical
            if known is None or version.at > known.at:
                newest[key] = version
    # Oldest first, so that within a group the sequence numbers follow time.
    return sorted(
        newest.values(),
        key=lambda version: (
            version.at,
            version.run_uuid,
            version.dataset_id,
            version.business_date or date.min,
            version.partition or "",
        ),
    )


def _announce(
    recording: Recording, claim: EventClaim, run_uuid: str, locations: Mapping[int, str]
) -> Iterator[Announced]:
    by_dataset: defaultdict[int, list[_Written]] = defaultdict(list)
    for dataset in claim.datasets:
        if dataset.writes:
            dataset_id = recording.dataset_id(dataset.namespace, dataset.name)
            by_dataset[dataset_id] += _written_parts(recording, dataset, locations.get(dataset_id))
    for dataset_id, parts in by_dataset.items():
        has_several_dates = len({written.part.business_date for written in parts} - {None}) > 1
        for written in parts:
            version, part = written.dataset.version, written.part
            stated = claim.business_date or version.business_date
            yield Announced(
                dataset_id=dataset_id,
                run_uuid=run_uuid,
                at=claim.at,
                claim=version,
                tag=tag_of(recording, written.dataset, NO_PART if written.is_whole else part),
                path=_storable_path(version.path or written.path),
                rows=version.rows if written.is_whole else None,
                size=version.size if written.is_whole else None,
                checksum=version.checksum if written.is_whole else None,
                schema_hash=recording.schema_hash(written.dataset),
                business_date=(
                    part.business_date or stated
                    if has_several_dates
                    else stated or part.business_date
                ),
                partition=part.partition,
                is_part=part != NO_PART,
                nominal_at=claim.nominal_at,
                historical=claim.historical,
                process_id=recording.process_id(claim),
            )


def _storable_path(path: str | None) -> str | None:
    """Return None for a path that is too long: truncated, it would be a wrong path."""
    return path if path is not None and len(path) <= MAX_PATH_LENGTH else None


def _written_parts(
    recording: Recording, dataset: DatasetClaim, location: str | None
) -> list[_Written]:
    """List the parts of a dataset that an output names."""
    version = dataset.version
    if version.locations:
        parts: dict[Part, str] = {}
        for path in version.locations:
            parts.setdefault(_parse_part(recording, path, location, dataset.name), path)
        return [_Written(dataset, part, path, len(parts) == 1) for part, path in parts.items()]
    if version.path:
        part = _parse_part(recording, version.path, location)
        if part != NO_PART:
            return [_Written(dataset, part, None, is_whole=True)]
    if location and (declared := location_date(location, dataset.name)):
        return [_Written(dataset, declared, None, is_whole=True)]
    dated = recording.dated(dataset.namespace, dataset.name)
    part = Part(dated.business_date, dated.partition) if dated else NO_PART
    return [_Written(dataset, part, None, is_whole=True)]


def _parse_part(recording: Recording, path: str, location: str | None, base: str = "") -> Part:
    declared = location_date(location, path) if location else None
    return declared or recording.dates.read_part(below(base, path))


def tag_of(recording: Recording, dataset: DatasetClaim, part: Part = NO_PART) -> str | None:
    """Return the tag that the producer gives a version, unique within the dataset.

    Several parts share the producer's version, and `fx_20260901` and `fx_20260902` may both have
    a version 1. So the date and the partition are prepended.
    """
    tag = dataset.version.tag
    if tag is None:
        return None
    named: Part | Dated | None = part
    if part == NO_PART:
        named = recording.dated(dataset.namespace, dataset.name)
    if named is None:
        return tag
    day = named.business_date.isoformat() if named.business_date else None
    return SEPARATOR.join(filter(None, (day, named.partition, tag)))[:300]
