"""The engine contract: turn the inputs of a process into its outputs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from floe import clock
from floe.execution.cancellation import Cancellation
from floe.execution.formats.contract import StoredVersion
from floe.execution.reporting import RunLog
from floe.execution.versions.drafts import Draft
from floe.execution.workspace import Workspace
from floe.spec import ProcessSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession


@dataclass
class StepRecord:
    """A named part of a run: its timing, its inputs and its row count."""

    name: str
    depends_on: Sequence[str] = ()
    started_at: datetime = field(default_factory=clock.now)
    ended_at: datetime | None = None
    rows: int | None = None
    status: str = "STARTED"
    counter: Any = None
    """Spark's observation that counts the rows as they pass, if there is one."""


@dataclass(frozen=True)
class InPlace:
    """An output that the engine wrote itself, at its draft's path."""

    rows: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Work:
    """Everything an engine needs to know about a run."""

    workspace: Workspace
    spark: "SparkSession"
    process: str
    spec: ProcessSpec
    run_id: str
    business_date: date
    partition: str | None
    params: Mapping[str, Any]
    inputs: Mapping[str, Sequence[StoredVersion]]
    frames: Mapping[str, "DataFrame"]
    drafts: Mapping[str, Draft]
    folder: Path
    log: RunLog
    cancellation: Cancellation
    steps: list[StepRecord] = field(default_factory=list)

    @property
    def bound(self) -> dict[str, Any]:
        """The parameters, with the built-in ones."""
        return {
            **self.params,
            "business_date": self.business_date,
            "partition": self.partition or self.business_date.isoformat(),
            "run_id": self.run_id,
        }


Outputs = Mapping[str, "DataFrame | InPlace"]


class Engine(Protocol):
    """Computes the outputs of a process, by alias."""

    def run(self, work: Work) -> Outputs:
        """Do the work. A returned frame may be lazy: the caller writes it."""
        ...
