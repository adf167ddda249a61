"""Let go of versions whose making failed. What cannot be let go of is left to the next start."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from floe.execution.cancelling import Cancellation
from floe.execution.failures import reason_of
from floe.execution.versions.drafts import Draft, abandon_draft
from floe.execution.workspace import Workspace

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

Say = Callable[[str], None]


@contextmanager
def let_go_on_failure(
    workspace: Workspace,
    spark: "SparkSession",
    drafts: Mapping[str, Draft],
    cancellation: Cancellation,
    say: Say,
) -> Iterator[None]:
    """Let go of what was reserved if the work fails; what went wrong with that is said."""
    try:
        yield
    except BaseException as error:
        reason = f"its run failed: {reason_of(error)}"
        for draft in drafts.values():
            _abandon(workspace, spark, draft, reason, say)
        if cancellation.error is not None and error is not cancellation.error:
            # What Spark or a command says of its end is not the reason of it.
            raise cancellation.error from error
        raise


def _abandon(
    workspace: Workspace, spark: "SparkSession", draft: Draft, reason: str, say: Say
) -> None:
    try:
        abandon_draft(workspace, spark, draft, reason)
    except Exception as error:  # noqa: BLE001 - the failure that led here is the one to raise
        left = f"{draft.place.dataset} {draft.place.tag} is left to the next start"
        say(f"{left}: {reason_of(error)}")
