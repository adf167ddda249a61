"""The I/O manager of Python assets: frames that they return become versions, and come back.

An asset that returns nothing has written by itself. One that names an upstream asset as a
parameter gets a frame of the version that is right for its partition or business date.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any, cast, get_args

from dagster import (
    AssetsDefinition,
    AssetSpec,
    Failure,
    FilesystemIOManager,
    InitResourceContext,
    InputContext,
    IOManager,
    OutputContext,
    io_manager,
)

from floe.errors import FloeError
from floe.execution.assets import (
    FrameWish,
    MadeVersion,
    Moment,
    find_input,
    look_for_deliveries,
    read_input,
    write_frame,
)
from floe.execution.frames import Kind, fetched, kind_of, rows_of_keys, spark_frame
from floe.orchestration.dbt.models import MATERIALIZED
from floe.orchestration.dbt.reading import last_made
from floe.orchestration.loading import Loading
from floe.orchestration.metadata import (
    PARTITION_COLUMN,
    READS,
    WRITE,
    Read,
    reads_metadata,
    version_metadata,
)
from floe.orchestration.moments import moment_of_key, run_date
from floe.orchestration.parts import Parts
from floe.orchestration.runtime import RESOURCE, Runtime, runtime_resource, stoppable
from floe.spec import DatasetSpec
from floe.spec.identity import dataset_of_dagster_key, run_id
from floe.spec.processes import WriteMode

if TYPE_CHECKING:
    from dagster import IOManagerDefinition
    from pyspark.sql import DataFrame

    from floe.execution.site import Site
    from floe.execution.versions.arrivals import Arrival

MODES = get_args(WriteMode)


class NoFrameError(FloeError):
    """An asset returned something that cannot become a version."""

    def __init__(self, asset: str, found: str) -> None:
        super().__init__(
            f"The asset '{asset}' returned {found}. Return a DataFrame of Spark or pandas or an "
            "Arrow table, which floe writes; or nothing, if the asset has written by itself."
        )


class WrongParameterTypeError(FloeError):
    """A parameter of an asset is to be of a type that no dataset can be read as."""

    def __init__(self, parameter: str, asset: str, found: str) -> None:
        super().__init__(
            f"The parameter '{parameter}' for '{asset}' is annotated with {found}. Use "
            "pyspark.sql.DataFrame (as without annotation), pandas.DataFrame or pyarrow.Table."
        )


class ManyKeysError(FloeError):
    """An asset returned one frame for several partitions, and nothing tells them apart."""

    def __init__(self, asset: str, keys: Sequence[str]) -> None:
        super().__init__(
            f"The asset '{asset}' was run for {len(keys)} partitions ({keys[0]} to {keys[-1]}) and "
            "returned one frame. Return a dictionary of frames by partition key, or declare the "
            "dataset's partition_column, or let it run for one partition at a time "
            "(backfill_policy: multi_run)."
        )


class KeysDifferError(FloeError):
    """An asset returned frames for other partitions than it was run for."""

    def __init__(self, asset: str, missing: Sequence[str], more: Sequence[str]) -> None:
        said = [f"lacks {', '.join(missing)}"] if missing else []
        said += [f"has {', '.join(more)} too many"] if more else []
        super().__init__(f"The dictionary that '{asset}' returned {' and '.join(said)}.")


class WrongWriteModeError(FloeError):
    """An asset says that it is written in a way that there is not."""

    def __init__(self, asset: str, mode: object) -> None:
        super().__init__(
            f"The metadata {WRITE} of '{asset}' is '{mode}'. Use one of: {', '.join(MODES)}."
        )


class FloeIOManager(IOManager):
    """Writes what assets return as versions, and reads versions for them."""

    def __init__(self, runtime: Runtime, values: IOManager) -> None:
        self._runtime = runtime
        self._values = values
        """What keeps the values of ops, which are no assets."""
        self._reads: dict[str, list[Read]] = {}
        """What the step under way has read, by the run of which it is a part."""

    def handle_output(self, context: OutputContext, obj: Any) -> None:
        """Write a frame as a version of the dataset that has the asset's key."""
        if not context.has_asset_key:
            self._values.handle_output(context, obj)
        elif obj is not None:
            with _as_failure():
                self._write(context, obj)

    def load_input(self, context: InputContext) -> Any:
        """Read the version of an upstream asset that is right for this run."""
        if not context.has_asset_key:
            return self._values.load_input(context)
        with _as_failure():
            return self._read(context)

    def _write(self, context: OutputContext, value: Any) -> None:
        dataset = dataset_of_dagster_key(list(context.asset_key.path))
        default = run_date(context.step_context, self._runtime.zone)
        if not context.has_asset_partitions:
            made = self._write_one(context, dataset, value, Moment(default))
            context.add_output_metadata(version_metadata(made))
            return
        keys = list(context.asset_partition_keys)
        frames = self._by_key(dataset, value, keys)
        for key in keys:
            moment = moment_of_key(key, context.asset_partitions_def, default)
            made = self._write_one(context, dataset, frames[key], moment, key)
            # Dagster's own way to say it of one partition: an output's metadata is for all.
            context.step_context.add_asset_metadata(
                version_metadata(made), context.asset_key, partition_key=key
            )

    def _by_key(self, dataset: str, value: Any, keys: Sequence[str]) -> Mapping[str, Any]:
        if isinstance(value, Mapping):
            missing = [key for key in keys if key not in value]
            more = [str(key) for key in value if key not in keys]
            if missing or more:
                raise KeysDifferError(dataset, missing, more)
            return value
        if len(keys) == 1:
            return {keys[0]: value}
        column = self._runtime.workspace.dataset(dataset).partition_column
        if column is None:
            raise ManyKeysError(dataset, keys)
        frame = self._frame(dataset, value)
        return {key: rows_of_keys(frame, column, [key]) for key in keys}

    def _write_one(
        self,
        context: OutputContext,
        dataset: str,
        value: Any,
        moment: Moment,
        key: str | None = None,
    ) -> MadeVersion:
        attempt = context.step_context.previous_attempt_count + 1
        wish = FrameWish(
            dataset,
            moment,
            str(run_id(context.run_id, context.step_key, key, attempt)),
            self._mode(context, dataset),
        )
        frame = self._frame(dataset, value)
        with stoppable() as cancellation:
            return write_frame(
                self._runtime.repaired(),
                frame,
                wish,
                cancellation=cancellation,
                say=context.log.info,
            )

    def _mode(self, context: OutputContext, dataset: str) -> WriteMode:
        given = context.definition_metadata.get(WRITE)
        if given is None:
            spec = self._runtime.workspace.dataset(dataset)
            return "replace" if spec.partition_column is None else "overwrite_partition"
        mode = getattr(given, "value", given)
        if mode not in MODES:
            raise WrongWriteModeError(dataset, mode)
        return cast("WriteMode", mode)

    def _frame(self, dataset: str, value: Any) -> "DataFrame":
        kind = kind_of(type(value))
        if kind is None:
            raise NoFrameError(dataset, type(value).__name__)
        if kind == "spark":
            frame: DataFrame = value
            return frame
        spec = self._runtime.workspace.dataset(dataset)
        return spark_frame(self._runtime.session(), value, spec)

    def _read(self, context: InputContext) -> Any:
        dataset = dataset_of_dagster_key(list(context.asset_key.path))
        kind = _kind(context, dataset)
        workspace, spark = self._runtime.repaired(), self._runtime.session()
        if dataset in self._runtime.models:
            keys = list(context.asset_partition_keys) if context.has_asset_partitions else []
            made = last_made(context.instance, context.asset_key, keys)
            self._tell(context, dataset, [made.tag])
            return fetched(made.frame(workspace, spark, keys), kind)
        wanted, until = self._wanted(context)
        arrivals: list[Arrival] = []
        if dataset not in self._runtime.made:
            arrivals = look_for_deliveries(workspace, spark, dataset, _days(wanted, until))
        planned = find_input(workspace, dataset, wanted, until=until, arrivals=arrivals)
        self._tell(context, dataset, planned.tags)
        return fetched(read_input(workspace, spark, planned), kind)

    def _wanted(self, context: InputContext) -> tuple[list[Moment], date]:
        """Return the moments whose versions are wanted, and the date that none may be after."""
        step = context.step_context
        until = run_date(step, self._runtime.zone)
        if not context.has_asset_partitions:
            return [], until
        definition = context.asset_partitions_def
        keys = context.asset_partition_keys
        return [moment_of_key(key, definition, until) for key in keys], until

    def _tell(self, context: InputContext, dataset: str, tags: Sequence[str]) -> None:
        self._note(context, [(dataset, tag) for tag in tags])
        context.log.info(f"{dataset}: reading {', '.join(tags)}")

    def _note(self, context: InputContext, reads: Sequence[Read]) -> None:
        """Let every output of the step say what was read, also if it is not written here."""
        step = context.step_context
        # A run for several partitions takes a step for one after the other.
        key = step.partition_key if step.has_partition_key else ""
        known = self._reads.setdefault(f"{step.run_id}/{step.step.key}/{key}", [])
        known += [read for read in reads if read not in known]
        for output in step.op_def.output_defs:
            step.add_output_metadata({READS: reads_metadata(known)}, output_name=output.name)


def floe_io_manager(site: "Site") -> "IOManagerDefinition":
    """Return the I/O manager that assets have when they name none."""

    @io_manager(
        required_resource_keys={RESOURCE},
        description="Writes frames that assets return as versions, and reads versions for them.",
    )
    def manager(context: InitResourceContext) -> FloeIOManager:
        folder = site.state_dir / "dagster" / "values"
        values = FilesystemIOManager(base_dir=str(folder)).create_io_manager(context)
        return FloeIOManager(getattr(context.resources, RESOURCE), values)

    return manager


def _kind(context: InputContext, dataset: str) -> Kind:
    """Return as which kind of frame a parameter is annotated; Spark's when it is not."""
    wanted = context.dagster_type.typing_type
    if context.dagster_type.is_any or wanted in (None, Any):
        return "spark"
    kind = kind_of(wanted) if isinstance(wanted, type) else None
    if kind is None:
        name = getattr(wanted, "__name__", str(wanted))
        raise WrongParameterTypeError(context.name, dataset, name)
    return kind


def _days(wanted: Sequence[Moment], until: date) -> list[date]:
    return [moment.business_date for moment in wanted] or [until]


@contextmanager
def _as_failure() -> Iterator[None]:
    """Say what went wrong in floe's one sentence: a stack of ours helps nobody."""
    try:
        yield
    except FloeError as error:
        raise Failure(str(error)) from None


def build_io_manager(loading: Loading, parts: Parts) -> Parts:
    """Let steps find the project, and assets have their frames kept, unless they say otherwise."""
    site = loading.site
    made = {dataset_of_dagster_key(list(spec.key.path)): spec for spec in _made_here(parts)}
    undeclared = {
        name: _declaration(spec) for name, spec in made.items() if name not in site.spec.datasets
    }
    models = frozenset(name for name, spec in made.items() if MATERIALIZED in spec.metadata)
    resources = {
        RESOURCE: runtime_resource(site, undeclared, made, models),
        "io_manager": floe_io_manager(site),
    }
    return replace(parts, resources={**resources, **parts.resources})


def _made_here(parts: Parts) -> Iterator[AssetSpec]:
    for one in parts.assets:
        if isinstance(one, AssetsDefinition) and one.is_executable:
            yield from one.specs


def _declaration(spec: AssetSpec) -> DatasetSpec:
    """Return how a dataset is declared that only its asset tells of: a lake table."""
    column = spec.metadata.get(PARTITION_COLUMN)
    return DatasetSpec(
        description=spec.description or "",
        partition_column=None if column is None else str(getattr(column, "value", column)),
    )
