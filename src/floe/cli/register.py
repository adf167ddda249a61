"""`floe register`: make the catalog agree with floe.yaml."""

import os
from getpass import getuser

from floe.cli.context import open_project_catalog
from floe.cli.options import JsonOption, ProjectOption
from floe.cli.output import console, print_json
from floe.settings import find_project


def register(project: ProjectOption = None, as_json: JsonOption = False) -> None:
    """Make the catalog agree with floe.yaml, and say what that changed."""
    from floe.catalog import register_project
    from floe.execution.declared_sql import load_with_sql
    from floe.spec import load_platform

    paths = find_project(project)
    loaded = load_with_sql(paths, os.environ)
    lake = load_platform(paths, os.environ).lake.name
    with open_project_catalog(project) as catalog, catalog.writing() as session:
        report = register_project(session, loaded.spec, lake=lake, actor=getuser())
    if as_json:
        print_json({"project": loaded.spec.name, "changes": [vars(line) for line in report.lines]})
        return
    for line in report.lines:
        console.print(str(line), markup=False)
    changed = f"{len(report.lines)} changes" if report.lines else "nothing to change"
    console.print(f"Registered {loaded.spec.name}: {changed}.", markup=False, style="bold")
