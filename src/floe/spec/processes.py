"""Processes: declared work that reads datasets and writes datasets."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from floe.spec.base import SpecModel
from floe.spec.names import Alias, DatasetName, FunctionRef, ProcessName
from floe.spec.promises import Owner, ProcessSla
from floe.spec.secrets import TextOrSecret
from floe.spec.values import AnyValue, Command, Duration, parse_duration

Engine = Literal["spark_sql", "pyspark", "python", "command", "database"]
Mapping = Literal["same_date", "previous_day", "previous_business_day", "latest", "last"]
WriteMode = Literal["replace", "append", "overwrite_partition", "merge"]
EARLIER_DATES = frozenset({"previous_day", "previous_business_day"})
"""Mappings that read only what existed before this business date: they close no cycle."""


class Input(SpecModel):
    """What a process reads, and which version of it for a business date."""

    dataset: DatasetName
    """The dataset."""
    mapping: Mapping = "same_date"
    """Which version: of the same date, an earlier one, the latest, or the last N."""
    count: Annotated[int, Field(ge=1)] | None = None
    """With `mapping: last`: how many versions."""
    calendar: str | None = None
    """The calendar of `previous_business_day`, when not that of the project."""
    max_age: Duration | None = None
    """With `latest` and `last`: versions older than this do not count."""
    optional: bool = False
    """Whether the process may run without it."""
    triggers: bool = True
    """Whether a new version of it is a reason to start the process again."""


class Output(SpecModel):
    """What a process writes, and how."""

    dataset: DatasetName
    """The dataset."""
    write: WriteMode = "replace"
    """Replace everything, append, overwrite the partition, or merge on the dataset's keys."""


def _dataset_alone(value: Any) -> Any:
    return {"dataset": value} if isinstance(value, str) else value


InputOrName = Annotated[Input, BeforeValidator(_dataset_alone, json_schema_input_type=str | Input)]
OutputOrName = Annotated[
    Output, BeforeValidator(_dataset_alone, json_schema_input_type=str | Output)
]


class Step(SpecModel):
    """One named view within a process; later steps and the outputs see it by its name."""

    name: Alias
    """The name of the view; a step named like an output is what is written there."""
    description: str = ""
    """What the step does."""
    sql: str | None = None
    """Spark SQL, or the .sql file that holds it."""
    function: FunctionRef | None = None
    """A Python function that takes DataFrames and returns one."""
    cache: bool = False
    """Whether the result is kept, because several later steps read it."""


class Retry(SpecModel):
    """How often and when to try again after a passing failure. Bad SQL is never tried again."""

    max_attempts: Annotated[int, Field(ge=1, le=100)] = 3
    """How many attempts there are in all."""
    delay: Duration = parse_duration("30s")
    """How long to wait before the second attempt."""
    backoff: Literal["fixed", "linear", "exponential"] = "exponential"
    """How the wait grows."""
    max_delay: Duration = parse_duration("15m")
    """The longest wait."""


ColumnSources = dict[str, dict[str, tuple[str, ...]]]


class ProcessSpec(SpecModel):
    """Declared work: inputs, outputs, and the SQL, function, command or statements between."""

    description: str = ""
    """What the process does."""
    owner: Owner | None = None
    """Who answers for it."""
    tags: tuple[str, ...] = ()
    """Words to find it by."""
    inputs: dict[Alias, InputOrName] = Field(default_factory=dict)
    """What it reads, by the alias that SQL uses."""
    outputs: Annotated[dict[Alias, OutputOrName], Field(min_length=1)]
    """What it writes, by alias."""
    trigger: Literal["process", "dataset", "hybrid"] = "process"
    """Who starts it: a schedule or a person, floe when its inputs are ready, or either."""
    engine: Engine | None = None
    """What runs it; by default it follows from the key that holds the work."""
    sql: str | None = None
    """Spark SQL, or the .sql file that holds it."""
    steps: tuple[Step, ...] = ()
    """Several named views; the sub-step graph is kept."""
    function: FunctionRef | None = None
    """A Python function: of DataFrames (engine pyspark) or of anything (engine python)."""
    command: Command | None = None
    """Any executable, as text or as a list of words."""
    environment: dict[str, TextOrSecret] = Field(default_factory=dict)
    """With `command`: variables it gets."""
    working_dir: str | None = None
    """With `command`: the folder it runs in."""
    connection: str | None = None
    """With `statements` or `procedure`: the connection of platform.yaml."""
    statements: tuple[str, ...] = ()
    """SQL statements, or .sql files, that run in a database in one transaction."""
    procedure: str | None = None
    """The stored procedure to call."""
    params: dict[str, AnyValue] = Field(default_factory=dict)
    """Parameters, bound by name; business_date, partition and run_id are always there."""
    column_lineage: ColumnSources = Field(default_factory=dict)
    """Where columns come from, when floe cannot know: output alias → column → [alias.column]."""
    retry: Retry = Retry()
    """How often to try again."""
    timeout: Duration | None = None
    """When to give up on an attempt."""
    sla: ProcessSla | None = None
    """When its outputs are promised, and how long it may take."""
    concurrency: Literal["wait", "refuse"] = "wait"
    """What a second run for the same date does while the first runs."""
    pool: str | None = None
    """The concurrency pool of platform.yaml that its runs count against."""
    compute: str | None = None
    """The compute profile of platform.yaml, when not that of the project."""
    spark_conf: dict[str, str] = Field(default_factory=dict)
    """Spark settings for its session."""
    renamed_from: ProcessName | None = None
    """What it was called before; its history moves along."""

    @property
    def runs_on(self) -> Engine:
        """The engine: as declared, else as the work implies."""
        if self.engine is not None:
            return self.engine
        if self.command is not None:
            return "command"
        if self.statements or self.procedure is not None:
            return "database"
        return "pyspark" if self.function is not None else "spark_sql"
