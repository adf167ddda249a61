"""What a materialisation or a check says of itself, and what is to be thought of it."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from dagster import AssetCheckSeverity, TableSchema

from floe.catalog.schemas import Column
from floe.orchestration.metadata import AWAITS, ROWS, SCHEMA, SIZE, SQL, VERSION
from floe.orchestration.observing.knowledge import dataset_of
from floe.orchestration.observing.logs import Attempt, Checked, End, Made
from floe.orchestration.observing.reports import Verdict, Written


def version_made(made: Made) -> Written:
    """Return the version that was made."""
    metadata = made.metadata
    return Written(
        dataset_of(made.key),
        str(metadata.get(VERSION) or ""),
        _count(metadata.get(ROWS)),
        _count(metadata.get(SIZE)),
        _columns(metadata.get(SCHEMA)),
        made.partition,
    )


def sql_of(made: Sequence[Made]) -> str | None:
    """Return the SQL of what was made, out of the fence that shows it well in Dagster."""
    found = next((one.metadata[SQL] for one in made if one.metadata.get(SQL)), None)
    if not isinstance(found, str):
        return None
    return found.removeprefix("```sql\n").removesuffix("\n```")


def time_of(value: Any) -> datetime | None:
    """Read a moment; None, where there is none."""
    if not isinstance(value, str):
        return None
    return datetime.fromisoformat(value).astimezone(UTC)


def verdict_of(checked: Checked) -> Verdict:
    """Return how a check came out."""
    found = checked.evaluation
    return Verdict(
        found.check_name,
        found.passed,
        found.severity is AssetCheckSeverity.ERROR,
        found.description or "",
    )


def judge(made: Made, checked: Sequence[Checked], end: End | None) -> tuple[int, str] | None:
    """Say whether a version is good that others can read already, and where that was known.

    None means that tests are still to come. One that was to come and never did leaves a version
    of which nobody knows that it is good.
    """
    awaited = set(made.metadata.get(AWAITS) or ())
    found = [
        one
        for one in checked
        if one.evaluation.asset_key == made.key and one.evaluation.check_name in awaited
    ]
    failed = [one for one in found if not one.evaluation.passed and verdict_of(one).strict]
    missing = sorted(awaited - {one.evaluation.check_name for one in found})
    if missing and end is None:
        return None
    places = [made.place, *(one.place for one in found)]
    if missing:
        assert end is not None
        places.append(end.place)
    said = [f"{one.evaluation.check_name} failed" for one in failed]
    said += [f"{name} was not run" for name in missing]
    return max(places), "; ".join(said)


def made_before(checked: Checked, attempt: Attempt) -> str:
    """Return the version that the same step made of what was checked, if it has no partition.

    In the run of a partition Dagster does not find it: it looks for that partition alone.
    """
    key, at = checked.evaluation.asset_key, checked.place
    made = [one for one in attempt.made if one.key == key and one.place < at]
    whole = [one for one in made if one.partition is None]
    return str(whole[-1].metadata.get(VERSION) or "") if whole else ""


def _columns(schema: Any) -> tuple[Column, ...]:
    if not isinstance(schema, TableSchema):
        return ()
    return tuple(
        Column(one.name, one.type, nullable=one.constraints.nullable) for one in schema.columns
    )


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
