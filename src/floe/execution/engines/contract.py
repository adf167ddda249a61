"""What every engine does: turn the inputs of a process into its outputs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from floe import clock
from floe.execution.cancelling import Cancellation
from floe.execution.formats.contract import VersionPlace
from floe.execution.logs import RunLog
from floe.execution.versions.drafts import Draft
from floe.execution.workspace import Workspace
from floe.spec import ProcessSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession


@dataclass
class StepRecord:
    """A named part of a run: when it was worked on, what it stands on, how many rows it gave."""

    name: str
    depends_on: Sequence[str] = ()
    started_at: datetime = field(default_factory=clock.now)
    ended_at: datetime | None = None
    rows: int | None = None
    status: str = "STARTED"
    counter: Any = None
    """What counts the rows while they pass, where Spark can."""


@dataclass(frozen=True)
class InPlace:
    """An output that the engine wrote by itself where its draft was to live."""

    rows: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Work:
    """All that an engine may know of the run that it is to do."""

    workspace: Workspace
    spark: "SparkSession"
    process: str
    spec: ProcessSpec
    run_id: str
    business_date: date
    partition: str | None
    params: Mapping[str, Any]
    inputs: Mapping[str, Sequence[VersionPlace]]
    frames: Mapping[str, "DataFrame"]
    drafts: Mapping[str, Draft]
    folder: Path
    log: RunLog
    cancellation: Cancellation
    steps: list[StepRecord] = field(default_factory=list)

    @property
    def bound(self) -> dict[str, Any]:
        """The parameters, with those that are always there."""
        return {
            **self.params,
            "business_date": self.business_date,
            "partition": self.partition or self.business_date.isoformat(),
            "run_id": self.run_id,
        }


Outputs = Mapping[str, "DataFrame | InPlace"]


class Engine(Protocol):
    """How the work of a process becomes its outputs, by alias."""

    def run(self, work: Work) -> Outputs:
        """Do the work. A frame may be lazy: it is written, and so computed, by the caller."""
        ...
