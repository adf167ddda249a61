"""Processes: declared work that reads datasets and writes datasets."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from floe.spec.base import SpecModel
from floe.spec.governance import Owner, ProcessSla
from floe.spec.names import Alias, DatasetName, FunctionRef, ProcessName
from floe.spec.secrets import TextOrSecret
from floe.spec.values import AnyValue, Command, Duration, parse_duration

Engine = Literal["spark_sql", "pyspark", "python", "command", "database"]
Mapping = Literal["same_date", "previous_day", "previous_business_day", "latest", "last"]
WriteMode = Literal["replace", "append", "overwrite_partition", "merge"]
EARLIER_DATES = frozenset({"previous_day", "previous_business_day"})
"""Mappings that read only earlier business dates, so they cannot form a cycle."""


class Input(SpecModel):
    """A dataset that a process reads, and which version it reads for a business date."""

    dataset: DatasetName
    """The dataset."""
    mapping: Mapping = "same_date"
    """Which version: of the same date, an earlier date, the latest, or the last N."""
    count: Annotated[int, Field(ge=1)] | None = None
    """With `mapping: last`: number of versions."""
    calendar: str | None = None
    """Calendar for `previous_business_day`; by default that of the project."""
    max_age: Duration | None = None
    """With `latest` and `last`: ignore versions older than this."""
    optional: bool = False
    """Whether the process may run without it."""
    triggers: bool = True
    """Whether a new version of this input starts the process again."""


class Output(SpecModel):
    """A dataset that a process writes, and how."""

    dataset: DatasetName
    """The dataset."""
    write: WriteMode = "replace"
    """Replace everything, append, overwrite the partition, or merge on the dataset's keys."""


def _expand_dataset(value: Any) -> Any:
    return {"dataset": value} if isinstance(value, str) else value


InputOrName = Annotated[Input, BeforeValidator(_expand_dataset, json_schema_input_type=str | Input)]
OutputOrName = Annotated[
    Output, BeforeValidator(_expand_dataset, json_schema_input_type=str | Output)
]


class Step(SpecModel):
    """A named view within a process, which later steps and outputs can use."""

    name: Alias
    """Name of the view. A step with the name of an output is written to that output."""
    description: str = ""
    """What the step does."""
    sql: str | None = None
    """Spark SQL, or the .sql file that holds it."""
    function: FunctionRef | None = None
    """A Python function that takes DataFrames and returns one."""
    cache: bool = False
    """Whether to cache the result because several later steps read it."""


class Retry(SpecModel):
    """How to retry after a transient failure. Invalid SQL is never retried."""

    max_attempts: Annotated[int, Field(ge=1, le=100)] = 3
    """Total number of attempts."""
    delay: Duration = parse_duration("30s")
    """How long to wait before the second attempt."""
    backoff: Literal["fixed", "linear", "exponential"] = "exponential"
    """How the delay grows after each attempt."""
    max_delay: Duration = parse_duration("15m")
    """Longest delay between attempts."""


ColumnSources = dict[str, dict[str, tuple[str, ...]]]


class ProcessSpec(SpecModel):
    """A process: inputs, outputs, and the SQL, function or command that it runs."""

    description: str = ""
    """What the process does."""
    owner: Owner | None = None
    """Who is responsible for the process."""
    tags: tuple[str, ...] = ()
    """Keywords, for search."""
    inputs: dict[Alias, InputOrName] = Field(default_factory=dict)
    """Datasets it reads, by the alias used in SQL."""
    outputs: Annotated[dict[Alias, OutputOrName], Field(min_length=1)]
    """Datasets it writes, by alias."""
    trigger: Literal["process", "dataset", "hybrid"] = "process"
    """What starts it: a schedule or person, floe when its inputs are ready, or both."""
    engine: Engine | None = None
    """What runs it; by default derived from whether `sql`, `function`, `command` … is given."""
    sql: str | None = None
    """Spark SQL, or the .sql file that holds it."""
    steps: tuple[Step, ...] = ()
    """Several named views; the run records each step and its dependencies."""
    function: FunctionRef | None = None
    """A Python function: on DataFrames (engine pyspark) or on anything (engine python)."""
    command: Command | None = None
    """Command to execute, as text or as a list of arguments."""
    environment: dict[str, TextOrSecret] = Field(default_factory=dict)
    """With `command`: its environment variables."""
    working_dir: str | None = None
    """With `command`: its working directory."""
    connection: str | None = None
    """With `statements` or `procedure`: the connection in platform.yaml."""
    statements: tuple[str, ...] = ()
    """SQL statements or .sql files that run in a database, in one transaction."""
    procedure: str | None = None
    """Stored procedure to call."""
    params: dict[str, AnyValue] = Field(default_factory=dict)
    """Parameters, bound by name. business_date, partition and run_id are always available."""
    column_lineage: ColumnSources = Field(default_factory=dict)
    """Column lineage that floe cannot derive: output alias → column → [alias.column]."""
    retry: Retry = Retry()
    """How to retry after a failure."""
    timeout: Duration | None = None
    """Maximum time for one attempt."""
    sla: ProcessSla | None = None
    """When its outputs must be ready, and how long a run may take."""
    concurrency: Literal["wait", "refuse"] = "wait"
    """Whether a second run for the same date waits for the first or is refused."""
    pool: str | None = None
    """Concurrency pool in platform.yaml that limits its runs."""
    compute: str | None = None
    """Compute profile in platform.yaml; by default that of the project."""
    spark_conf: dict[str, str] = Field(default_factory=dict)
    """Spark settings for its session."""
    renamed_from: ProcessName | None = None
    """Previous name; the history moves to the new name."""

    @property
    def runs_on(self) -> Engine:
        """The declared engine, or the one that `sql`, `function`, `command` … implies."""
        if self.engine is not None:
            return self.engine
        if self.command is not None:
            return "command"
        if self.statements or self.procedure is not None:
            return "database"
        return "pyspark" if self.function is not None else "spark_sql"
