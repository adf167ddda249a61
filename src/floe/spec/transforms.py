"""Transforms: whole projects of another tool that take part, today dbt."""

from typing import Literal

from pydantic import Field

from floe.spec.base import SpecModel
from floe.spec.values import AnyValue


class DbtTransform(SpecModel):
    """A dbt project, each of whose models is a dataset."""

    type: Literal["dbt"]
    """`dbt`"""
    path: str = "dbt"
    """The folder of the dbt project."""
    target: str | None = None
    """The target of the profile."""
    vars: dict[str, AnyValue] = Field(default_factory=dict)
    """Variables passed to dbt."""
    select: tuple[str, ...] = ()
    """Only these models, in dbt's own selection syntax."""
    exclude: tuple[str, ...] = ()
    """Not these models."""
