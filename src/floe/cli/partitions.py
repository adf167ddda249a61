"""`floe partitions`: the keys that versions are made for, and those added while floe runs."""

from typing import Annotated

import typer

from floe.cli.options import JsonOption, ProjectOption
from floe.cli.output import console, print_json, table
from floe.errors import FloeError

app = typer.Typer(help="Look at partitions, and add keys to dynamic ones.", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(help="Partitions of floe.yaml with type: dynamic.")]
KeysArgument = Annotated[list[str], typer.Argument(help="One or more keys.")]


class NoPartitionsError(FloeError):
    """Partitions were asked for that floe.yaml does not declare."""

    def __init__(self, name: str) -> None:
        super().__init__(f"No partitions named '{name}' are declared. List: floe partitions list")


@app.command()
def add(name: NameArgument, keys: KeysArgument, project: ProjectOption = None) -> None:
    """Add keys to dynamic partitions. One that is there already changes nothing."""
    from floe.orchestration.dynamic_partitions import add_partitions

    new = add_partitions(name, keys, project)
    known = len(set(keys)) - len(new)
    said = f"{len(new)} added to '{name}'" + (f", {known} there already" if known else "")
    console.print(said, markup=False)


@app.command()
def remove(name: NameArgument, keys: KeysArgument, project: ProjectOption = None) -> None:
    """Remove keys from dynamic partitions. What was made for them stays."""
    from floe.orchestration.dynamic_partitions import remove_partitions

    remove_partitions(name, keys, project)
    console.print(f"{len(set(keys))} removed from '{name}'", markup=False)


@app.command("list")
def list_(
    name: Annotated[str | None, typer.Argument(help="Show the keys of these alone.")] = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """List partitions, or the keys of some."""
    from floe.orchestration.keys import list_partitions

    found = list_partitions(project)
    if name is not None:
        chosen = next((one for one in found if one.name == name), None)
        if chosen is None:
            raise NoPartitionsError(name)
        _show_keys(chosen.keys, as_json)
        return
    rows = [
        {
            "name": one.name,
            "type": one.kind,
            "keys": len(one.keys),
            "first": one.keys[0] if one.keys else None,
            "last": one.keys[-1] if one.keys else None,
        }
        for one in found
    ]
    if as_json:
        print_json(rows)
    elif rows:
        console.print(table("Partitions", rows))
    else:
        console.print("No partitions are declared. See orchestration.partitions in floe.yaml.")


@app.command()
def check(project: ProjectOption = None, as_json: JsonOption = False) -> None:
    """Find partitions that were made and are no keys any more. Exit 1: there are some."""
    from floe.orchestration.keys import find_drift

    drift = find_drift(project)
    if as_json:
        print_json(drift)
    else:
        for sentence in drift or ["All that was made is a key of its partitions."]:
            console.print(sentence, markup=False, soft_wrap=True)
    raise typer.Exit(1 if drift else 0)


def _show_keys(keys: tuple[str, ...], as_json: bool) -> None:
    if as_json:
        print_json(list(keys))
        return
    for key in keys:
        typer.echo(key)
