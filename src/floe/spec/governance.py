"""Governance: what every dataset must declare, and how sensitive data is treated."""

from typing import Literal

from pydantic import Field

from floe.spec.base import SpecModel
from floe.spec.promises import Owner, RetentionOrAge

Requirement = Literal[
    "description", "owner", "category", "tags", "classification", "schema", "sla", "checks",
    "retention",
]  # fmt: skip


class Policy(SpecModel):
    """What is done with columns of a classification."""

    action: Literal["mask", "hash", "drop", "restrict"]
    """Mask, hash or drop the values for those who may not see them, or restrict the dataset."""
    classifications: tuple[str, ...] = ()
    """The classifications it applies to."""
    roles: tuple[str, ...] = ()
    """Who may see the values all the same."""
    description: str = ""
    """Why the policy exists."""


class Governance(SpecModel):
    """The rules that the project's datasets follow."""

    classifications: tuple[str, ...] = ("public", "internal", "confidential", "restricted")
    """The words for how sensitive data is, from least to most."""
    policies: dict[str, Policy] = Field(default_factory=dict)
    """What is done with sensitive columns, by name."""
    require: tuple[Requirement, ...] = ()
    """What every dataset must declare; one that does not is a finding."""
    approval: bool = False
    """Whether a steward approves each new dataset before it becomes active."""
    default_owner: Owner | None = None
    """Who answers for datasets and processes that name no owner."""
    default_retention: RetentionOrAge | None = None
    """How long versions are kept, when the dataset does not say."""
