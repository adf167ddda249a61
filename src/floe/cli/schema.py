"""`floe schema`: print the JSON Schema of floe.yaml or platform.yaml, for editors."""

from enum import StrEnum
from typing import Annotated

import typer

from floe.cli.output import print_json


class SchemaFile(StrEnum):
    """The files that have a schema."""

    FLOE = "floe"
    PLATFORM = "platform"


FileArgument = Annotated[SchemaFile, typer.Argument(help="File to describe.")]


def schema(file: FileArgument = SchemaFile.FLOE) -> None:
    """Print the JSON Schema of floe.yaml or platform.yaml."""
    from floe.spec.json_schema import platform_schema, project_schema

    print_json(project_schema() if file is SchemaFile.FLOE else platform_schema())
