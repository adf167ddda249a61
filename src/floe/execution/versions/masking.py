"""Apply the project's policies: mask, hash or drop columns for a reader."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from floe.errors import FloeError
from floe.spec import DatasetSpec
from floe.spec.governance import Governance, Policy

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MASK = "***"
STRICTNESS = ("hash", "mask", "drop")
"""Actions, least strict first. Of several policies, the strictest applies."""


class DatasetRestrictedError(FloeError):
    """The dataset's policy does not let the reader's roles read it."""

    def __init__(self, dataset: str, policy: str, roles: Sequence[str]) -> None:
        hint = "The policy names no role that may read it."
        if roles:
            allowed = " and ".join(roles)
            hint = f"Only {allowed} may read it: set FLOE_API_TOKEN to a token with such a role."
        super().__init__(f"'{dataset}' is restricted by the policy '{policy}' of floe.yaml. {hint}")


@dataclass(frozen=True)
class Covered:
    """A column whose values the reader may not see."""

    column: str
    action: str
    policy: str


def cover_columns(
    governance: Governance,
    name: str,
    dataset: DatasetSpec,
    columns: Sequence[str],
    roles: Collection[str],
) -> list[Covered]:
    """Return the columns a reader may not see; raise if the dataset is restricted.

    A column without a classification, even an undeclared one, inherits that of its dataset.
    """
    policies = {
        key: policy
        for key, policy in governance.policies.items()
        if not set(policy.roles) & set(roles)
    }
    own = {column.name.lower(): column.classification for column in dataset.columns}
    kinds = {column: own.get(column.lower()) or dataset.classification for column in columns}
    _refuse_restricted(name, policies, {dataset.classification, *own.values()})
    return [
        max(covering, key=lambda rule: STRICTNESS.index(rule.action))
        for column, kind in kinds.items()
        if (covering := list(_covering(policies, column, kind)))
    ]


def apply_policies(frame: "DataFrame", covered: Sequence[Covered]) -> "DataFrame":
    """Mask, hash or drop the covered columns of a frame."""
    from pyspark.sql import functions as F  # noqa: N812

    actions = {column.column: column.action for column in covered}
    if not actions:
        return frame
    return frame.select(
        *(
            _shown(F.col(f"`{name.replace('`', '``')}`"), actions.get(name)).alias(name)
            for name in frame.columns
            if actions.get(name) != "drop"
        )
    )


def _shown(column: "Column", action: str | None) -> "Column":
    from pyspark.sql import functions as F  # noqa: N812

    if action == "mask":
        return F.when(column.isNotNull(), F.lit(MASK))
    return F.sha2(column.cast("string"), 256) if action == "hash" else column


def _covering(policies: dict[str, Policy], column: str, kind: str | None) -> Iterator[Covered]:
    for name, policy in policies.items():
        if kind in policy.classifications and policy.action in STRICTNESS:
            yield Covered(column, policy.action, name)


def _refuse_restricted(
    dataset: str, policies: dict[str, Policy], kinds: Collection[str | None]
) -> None:
    for name, policy in policies.items():
        if policy.action == "restrict" and set(policy.classifications) & set(kinds):
            raise DatasetRestrictedError(dataset, name, policy.roles)
