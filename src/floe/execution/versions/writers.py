"""The Spark session that writes a version: whoever repairs the version ends it first.

A server goes on with a query after the one who asked for it was killed. It would write what was
let go of meanwhile.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from floe.execution.sparks import Sparks

SESSION, COMPUTE = "session", "compute"


@dataclass(frozen=True)
class WriterSession:
    """A session, by its number and the compute profile of its server."""

    number: str
    profile: str | None = None

    @property
    def details(self) -> dict[str, Any]:
        """What is kept of it with the version."""
        return {SESSION: self.number} | ({COMPUTE: self.profile} if self.profile else {})


def end_writer(sparks: Sparks, details: Mapping[str, Any]) -> None:
    """End what a dead writer of a version has left running."""
    number, profile = details.get(SESSION), details.get(COMPUTE)
    if isinstance(number, str):
        sparks.end(number, profile=profile)
