"""`floe drift`: where events and declarations disagree, and how to decide."""

from dataclasses import asdict
from getpass import getuser
from typing import Annotated, Any

import typer

from floe.cli.context import JsonOption, ProjectOption, open_project_catalog
from floe.cli.output import console, print_json, table

app = typer.Typer(help="Show where events and declarations disagree; decide on claims.")

ClaimArgument = Annotated[int, typer.Argument(help="Id of the claim, from floe drift.")]
CommentOption = Annotated[str | None, typer.Option(help="Reason, for the audit log.")]
AllOption = Annotated[bool, typer.Option("--all", help="Also list dismissed claims.")]
MOST_SHOWN = 1000
VERBS = {"CONSUMES": "reads", "PRODUCES": "writes"}


@app.callback(invoke_without_command=True)
def drift(
    context: typer.Context,
    every: AllOption = False,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """List where events disagree with declarations: claims to decide on, and edges."""
    if context.invoked_subcommand is not None:
        return
    from floe.catalog.drift import OPEN, list_drift, list_drift_claims

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
        console.print(table("claims", [_claim_row(claim, every) for claim in claims]))
        console.print("Decide with: floe drift accept CLAIM or floe drift dismiss CLAIM")
    if edges:
        rows = [
            {
                "kind": edge.kind,
                "edge": f"{edge.process_key} {VERBS[edge.role]} {edge.dataset}",
                "last seen": edge.last_seen,
            }
            for edge in edges
        ]
        console.print(table("edges", rows))


def _claim_row(claim: Any, with_status: bool) -> dict[str, Any]:
    from floe.catalog.drift import FOREIGN_VERSION

    relation = "was written by" if claim.kind == FOREIGN_VERSION else "is the same as"
    return {
        "claim": claim.claim_id,
        "the event says": f"{claim.dataset} {relation} {claim.subject}",
        "last seen": claim.last_seen,
        **({"status": claim.status} if with_status else {}),
    }


@app.command()
def accept(
    claim: ClaimArgument, comment: CommentOption = None, project: ProjectOption = None
) -> None:
    """Join the two datasets of a claim. To undo: floe catalog split NAME."""
    from floe.catalog.drift import accept_claim

    with open_project_catalog(project) as catalog, catalog.writing() as session:
        name = accept_claim(session, claim, actor=getuser(), comment=comment)
    console.print(f"Both names now mean {name}.", markup=False)


@app.command()
def dismiss(
    claim: ClaimArgument, comment: CommentOption = None, project: ProjectOption = None
) -> None:
    """Reject a claim and change nothing. The same claim is not listed again."""
    from floe.catalog.drift import dismiss_claim

    with open_project_catalog(project) as catalog, catalog.writing() as session:
        dismiss_claim(session, claim, actor=getuser(), comment=comment)
    console.print(f"Dismissed claim {claim}.")
