"""Options that several commands share, so that they are spelled alike everywhere."""

from pathlib import Path
from typing import Annotated

import typer

ProjectOption = Annotated[
    Path | None,
    typer.Option("--project", "-p", help="Folder that holds floe.yaml (default: here or above)."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
