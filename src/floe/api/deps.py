"""Parameters that many routes share, so that they are named, limited and explained alike."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import AwareDatetime

from floe import clock

LARGEST_NUMBER = 2**63 - 1
DEFAULT_LIMIT, MOST_ITEMS = 50, 1000
DEEPEST = 100


Number = Annotated[int, Path(ge=1, le=LARGEST_NUMBER, examples=[17])]
OptionalNumber = Annotated[int | None, Query(ge=1, le=LARGEST_NUMBER, examples=[17])]
Limit = Annotated[int, Query(ge=1, le=MOST_ITEMS, description="How many items a page has at most.")]
Cursor = Annotated[
    str | None,
    Query(max_length=2000, description="`next` of the page before; leave it out to start."),
]
Word = Annotated[str | None, Query(max_length=300)]
FullName = Annotated[
    str,
    Query(
        min_length=1,
        max_length=600,
        description="Its full name, its name where that is unique, an alias, or its number.",
        examples=["lake/credit.exposure"],
    ),
]
Depth = Annotated[
    int, Query(ge=0, le=DEEPEST, description="How many datasets to go.", examples=[5])
]
Day = Annotated[
    date | None, Query(ge=clock.FIRST_DATE, le=clock.LAST_DATE, examples=["2026-09-01"])
]
# Beyond these a change of zone would leave the calendar.
EARLIEST, LATEST = datetime(1900, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
Moment = Annotated[
    AwareDatetime | None,
    Query(
        ge=EARLIEST,
        le=LATEST,
        description="A time with its zone.",
        examples=["2026-09-01T06:30:00Z"],
    ),
]


def given(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out the parameters that a request does not have."""
    return {name: value for name, value in parameters.items() if value is not None}
