"""What a reader may see: columns are masked, hashed or left out as the project's policies say."""

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
"""What is done with a column, from least to most: of several policies the strictest stands."""


class DatasetRestrictedError(FloeError):
    """A dataset was asked for whose policy lets only some roles in."""

    def __init__(self, dataset: str, policy: str, roles: Sequence[str]) -> None:
        allowed = f"Only {' and '.join(roles)} may read it" if roles else "Nobody may read it here"
        super().__init__(
            f"'{dataset}' is restricted by the policy '{policy}' of floe.yaml. {allowed}: "
            "set FLOE_API_TOKEN to a token of such a role."
        )


@dataclass(frozen=True)
class Covered:
    """A column that the reader does not see as it is."""

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
    """Say which columns a reader in some roles may not see; refuse what is restricted.

    A column without a classification of its own has that of its dataset: one that nobody declared
    is as sensitive as what it stands beside.
    """
    policies = {
        key: policy
        for key, policy in governance.policies.items()
        if not set(policy.roles) & set(roles)
    }
    own = {one.name.lower(): one.classification for one in dataset.columns}
    kinds = {column: own.get(column.lower()) or dataset.classification for column in columns}
    _refuse_restricted(name, policies, {dataset.classification, *own.values()})
    return [
        max(found, key=lambda one: STRICTNESS.index(one.action))
        for column, kind in kinds.items()
        if (found := list(_covering(policies, column, kind)))
    ]


def cover(frame: "DataFrame", covered: Sequence[Covered]) -> "DataFrame":
    """Return a frame in which the columns are as the reader may see them."""
    from pyspark.sql import functions as F  # noqa: N812

    actions = {one.column: one.action for one in covered}
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
