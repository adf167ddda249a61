"""`floe partitions`: list partition keys; add and remove keys of dynamic partitions."""

from typing import Annotated

import typer

from floe.cli.context import JsonOption, ProjectOption
from floe.cli.output import console, print_json, table
from floe.errors import FloeError

app = typer.Typer(
    help="List partitions; add and remove keys of dynamic ones.", no_args_is_help=True
)

NameArgument = Annotated[str, typer.Argument(help="Dynamic partitions of floe.yaml.")]
KeysArgument = Annotated[list[str], typer.Argument(help="One or more keys.")]


class NoPartitionsError(FloeError):
    """floe.yaml does not declare partitions of this name."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"No partitions named '{name}' are declared. List them with: floe partitions list"
        )


@app.command()
def add(name: NameArgument, keys: KeysArgument, project: ProjectOption = None) -> None:
    """Add keys to dynamic partitions. Existing keys are ignored."""
    from floe.orchestration.partition_keys import add_partitions

    new = add_partitions(name, keys, project)
    known = len(set(keys)) - len(new)
    existing = f", {known} already there" if known else ""
    console.print(f"{len(new)} added to '{name}'{existing}", markup=False)


@app.command()
def remove(name: NameArgument, keys: KeysArgument, project: ProjectOption = None) -> None:
    """Remove keys from dynamic partitions. Their versions stay."""
    from floe.orchestration.partition_keys import remove_partitions

    remove_partitions(name, keys, project)
    console.print(f"{len(set(keys))} removed from '{name}'", markup=False)


@app.command("list")
def list_(
    name: Annotated[
        str | None, typer.Argument(help="Show only the keys of these partitions.")
    ] = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """List all partitions, or the keys of one."""
    from floe.orchestration.partition_keys import list_partitions

    declared = list_partitions(project)
    if name is not None:
        chosen = next((partitions for partitions in declared if partitions.name == name), None)
        if chosen is None:
            raise NoPartitionsError(name)
        _show_keys(chosen.keys, as_json)
        return
    rows = [
        {
            "name": partitions.name,
            "type": partitions.kind,
            "keys": len(partitions.keys),
            "first": partitions.keys[0] if partitions.keys else None,
            "last": partitions.keys[-1] if partitions.keys else None,
        }
        for partitions in declared
    ]
    if as_json:
        print_json(rows)
    elif rows:
        console.print(table("Partitions", rows))
    else:
        console.print("No partitions are declared. See orchestration.partitions in floe.yaml.")


@app.command()
def check(project: ProjectOption = None, as_json: JsonOption = False) -> None:
    """Find materialized partitions that are no longer declared. Exit 1 if any exist."""
    from floe.orchestration.definitions import find_drift

    drift = find_drift(project)
    if as_json:
        print_json(drift)
    else:
        for sentence in drift or ["Every materialized partition is still declared."]:
            console.print(sentence, markup=False, soft_wrap=True)
    raise typer.Exit(1 if drift else 0)


def _show_keys(keys: tuple[str, ...], as_json: bool) -> None:
    if as_json:
        print_json(list(keys))
        return
    for key in keys:
        typer.echo(key)
