"""`floe drift`: what events claim against what is declared, and what to do about it."""

from dataclasses import asdict
from getpass import getuser
from typing import Annotated, Any

import typer

from floe.cli.context import open_project_catalog
from floe.cli.options import JsonOption, ProjectOption
from floe.cli.output import console, print_json, table

app = typer.Typer(help="What events claim against what is declared.")

ClaimArgument = Annotated[int, typer.Argument(help="Number of the claim, from `floe drift`.")]
CommentOption = Annotated[str | None, typer.Option(help="Why, for the audit log.")]
AllOption = Annotated[bool, typer.Option("--all", help="Also list dismissed claims.")]
MOST_SHOWN = 1000


@app.callback(invoke_without_command=True)
def drift(
    context: typer.Context,
    every: AllOption = False,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """List claims of events, and edges on which declaration and observation disagree."""
    if context.invoked_subcommand is not None:
        return
    from floe.catalog.drift import list_drift
    from floe.catalog.drift_claims import OPEN, list_drift_claims

    with open_project_catalog(project) as catalog, catalog.reading() as session:
        claims = list_drift_claims(session, status=None if every else OPEN, limit=MOST_SHOWN)
        edges = list_drift(session, limit=MOST_SHOWN)
    if as_json:
        print_json(
            {"claims": [asdict(claim) for claim in claims], "edges": [asdict(e) for e in edges]}
        )
        return
    if not claims and not edges:
        console.print("No drift.")
    if claims:
        console.print(table("claims of events", [_claim_row(claim) for claim in claims]))
        console.print("Decide with: floe drift accept CLAIM, or floe drift dismiss CLAIM")
    if edges:
        rows = [
            {"kind": edge.kind, "process": edge.process_key, "role": edge.role,
             "dataset": edge.dataset, "last seen": edge.last_seen}
            for edge in edges
        ]  # fmt: skip
        console.print(table("edges", rows))


def _claim_row(claim: Any) -> dict[str, Any]:
    return {
        "claim": claim.claim_id,
        "kind": claim.kind,
        "dataset": claim.dataset,
        "same as, or written by": claim.subject,
        "last seen": claim.last_seen,
        "status": claim.status,
    }


@app.command()
def accept(
    claim: ClaimArgument, comment: CommentOption = None, project: ProjectOption = None
) -> None:
    """Join the two datasets of a claim. Undo it with: floe catalog split NAME."""
    from floe.catalog.drift_claims import accept_claim

    with open_project_catalog(project) as catalog, catalog.writing() as session:
        name = accept_claim(session, claim, actor=getuser(), comment=comment)
    console.print(f"Both are {name} now.", markup=False)


@app.command()
def dismiss(
    claim: ClaimArgument, comment: CommentOption = None, project: ProjectOption = None
) -> None:
    """Leave everything as it is. The same claim is not listed again."""
    from floe.catalog.drift_claims import dismiss_claim

    with open_project_catalog(project) as catalog, catalog.writing() as session:
        dismiss_claim(session, claim, actor=getuser(), comment=comment)
    console.print(f"Claim {claim} is dismissed.")
