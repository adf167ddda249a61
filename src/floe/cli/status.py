"""`floe status`: how the services stand."""

import typer

from floe.cli.options import JsonOption, ProjectOption
from floe.cli.output import console, err, print_json
from floe.cli.service_views import to_json, up_table
from floe.settings import find_project

# As service managers have it: 3 says that nothing runs, and that this is not wrong.
DOWN = 3


def status(project: ProjectOption = None, as_json: JsonOption = False) -> None:
    """Show what is up. Exit 0: all is well; 3: nothing is up; 1: something is not as it should."""
    from floe.services.leftovers import seen_now
    from floe.services.state import READY, read_up

    found = read_up(find_project(project))
    if found is None:
        if as_json:
            print_json({"supervisor": None, "services": [], "notes": []})
        else:
            console.print("Nothing is up. Start with: floe up")
        raise typer.Exit(DOWN)
    seen = seen_now(found)
    if as_json:
        print_json(to_json(seen))
    else:
        console.print(up_table(seen))
    if not seen.alive:
        err.print("What kept them up was killed. Clean up with: floe up, or floe down")
    well = seen.alive and all(one.state in READY for one in seen.services)
    raise typer.Exit(0 if well else 1)
