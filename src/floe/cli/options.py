"""Options that several commands share, so that they are spelled alike everywhere."""

from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from floe import clock

ProjectOption = Annotated[
    Path | None,
    typer.Option("--project", "-p", help="Folder that holds floe.yaml (default: here or above)."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]


def parse_business_date(text: str | date) -> date:
    """Read a business date as somebody typed it."""
    try:
        day = text if isinstance(text, date) else datetime.strptime(text, "%Y-%m-%d").date()  # noqa: DTZ007
    except ValueError:
        raise typer.BadParameter(f"'{text}' is not a date. Write it as 2026-09-01.") from None
    if not clock.is_business_date(day):
        raise typer.BadParameter(f"{day} is out of range: business dates go {clock.DATE_RANGE}.")
    return day


def date_option(explanation: str) -> Any:
    """The option `--date` of a command."""
    return typer.Option(
        "--date", "-d", parser=parse_business_date, metavar="YYYY-MM-DD", help=explanation
    )
