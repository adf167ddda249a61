"""`floe compile`: check a project and write its compiled file, or check that file."""

from typing import TYPE_CHECKING, Annotated

import typer

from floe.cli.context import ProjectOption
from floe.cli.output import console, err
from floe.cli.validate import print_warnings

if TYPE_CHECKING:
    from floe.settings import ProjectPaths

CheckOption = Annotated[
    bool,
    typer.Option("--check", help="Only check whether the compiled file is stale; exit 1 if so."),
]


def compile(project: ProjectOption = None, check: CheckOption = False) -> None:  # noqa: A001
    """Check floe.yaml; write .floe/compiled_artifacts.json and dbt's manifest."""
    from floe.settings import find_project
    from floe.spec import compile_project, write_compiled

    paths = find_project(project)
    if check:
        _check(paths)
        return
    from floe.execution.declared_sql import validate_with_sql

    compiled = compile_project(paths, validate=validate_with_sql)
    shown = paths.compiled.relative_to(paths.root)
    write_compiled(paths, compiled)
    print_warnings(compiled.warnings)
    sources = len(compiled.sources)
    plural = "" if sources == 1 else "s"
    console.print(
        f"Wrote {shown} from {sources} source{plural}, hash {compiled.hash[:12]}.",
        markup=False,
        soft_wrap=True,
    )
    _compile_dbt(paths)


def _compile_dbt(paths: "ProjectPaths") -> None:
    """Have dbt parse its project, if there is one."""
    from floe.spec.compiler import read_compiled

    tree = read_compiled(paths.compiled)["spec"]
    if not tree.get("transforms") and not tree.get("orchestration", {}).get("dbt"):
        return
    from floe.orchestration.dbt.manifest import compile_dbt

    manifest = compile_dbt(paths)
    if manifest is not None:
        console.print(f"dbt wrote {manifest.relative_to(paths.root)}.", markup=False)


def _check(paths: "ProjectPaths") -> None:
    from floe.spec import find_stale

    shown = paths.compiled.relative_to(paths.root)
    staleness = find_stale(paths)
    if not staleness.is_stale:
        console.print(f"{shown} is up to date.", markup=False)
        return
    if staleness.missing:
        err.print(f"{shown} does not exist. Run: floe compile.", markup=False)
    else:
        changed = ", ".join(staleness.sources)
        err.print(f"{shown} is stale: {changed} changed. Run: floe compile.", markup=False)
    raise typer.Exit(1)
