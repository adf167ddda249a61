"""The I/O manager of Python assets: it writes returned frames as versions, and reads versions.

An asset that returns nothing has written its data itself. A parameter named after an upstream asset
gets a frame of the version for the asset's partition or business date.
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
from floe.execution.asset_versions import (
    FrameTarget,
    OutputVersion,
    VersionKey,
    find_input,
    read_input,
    receive_deliveries,
    write_frame,
)
from floe.execution.frames import Kind, convert_frame, frame_kind, rows_of_keys, spark_frame
from floe.orchestration.business_dates import moment_of_key, run_date
from floe.orchestration.dbt.model_versions import last_built
from floe.orchestration.dbt.nodes import MATERIALIZED
from floe.orchestration.loading import Loading, Parts
from floe.orchestration.metadata import (
    PARTITION_COLUMN,
    READS,
    WRITE,
    Read,
    reads_metadata,
    version_metadata,
)
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

    def __init__(self, asset: str, returned: str) -> None:
        super().__init__(
            f"The asset '{asset}' returned {returned}. Return a DataFrame of Spark or pandas or an "
            "Arrow table, which floe writes; or nothing, if the asset writes its data itself."
        )


class WrongParameterTypeError(FloeError):
    """A parameter of an asset is annotated with a type that is no kind of frame."""

    def __init__(self, parameter: str, asset: str, annotation: str) -> None:
        super().__init__(
            f"The parameter '{parameter}' for '{asset}' is annotated with {annotation}. Use "
            "pyspark.sql.DataFrame (the default), pandas.DataFrame or pyarrow.Table."
        )


class ManyKeysError(FloeError):
    """An asset returned one frame for several partitions that cannot be split."""

    def __init__(self, asset: str, keys: Sequence[str]) -> None:
        super().__init__(
            f"The asset '{asset}' was run for {len(keys)} partitions ({keys[0]} to {keys[-1]}) and "
            "returned one frame. Return a dictionary of frames by partition key, declare the "
            "dataset's partition_column, or run it for one partition at a time "
            "(backfill_policy: multi_run)."
        )


class KeysDifferError(FloeError):
    """An asset returned frames for other partitions than those of the run."""

    def __init__(self, asset: str, missing: Sequence[str], unexpected: Sequence[str]) -> None:
        problems = [f"has no {', '.join(missing)}"] if missing else []
        problems += [f"has unexpected keys: {', '.join(unexpected)}"] if unexpected else []
        super().__init__(f"The dictionary that '{asset}' returned {' and '.join(problems)}.")


class WrongWriteModeError(FloeError):
    """The write mode of an asset is invalid."""

    def __init__(self, asset: str, mode: object) -> None:
        super().__init__(
            f"The metadata {WRITE} of '{asset}' must be one of: {', '.join(MODES)}; got '{mode}'."
        )


class FloeIOManager(IOManager):
    """Writes returned frames as versions, and reads versions as frames."""

    def __init__(self, runtime: Runtime, values: IOManager) -> None:
        self._runtime = runtime
        self._values = values
        """Stores the values of ops, which are not assets."""
        self._reads: dict[str, list[Read]] = {}
        """The versions that each step of a run has read."""

    def handle_output(self, context: OutputContext, obj: Any) -> None:
        """Write a frame as a version of the asset's dataset."""
        if not context.has_asset_key:
            self._values.handle_output(context, obj)
        elif obj is not None:
            with _errors_as_failure():
                self._write(context, obj)

    def load_input(self, context: InputContext) -> Any:
        """Read the version of an upstream asset for this run's partition or date."""
        if not context.has_asset_key:
            return self._values.load_input(context)
        with _errors_as_failure():
            return self._read(context)

    def _write(self, context: OutputContext, value: Any) -> None:
        dataset = dataset_of_dagster_key(list(context.asset_key.path))
        default = run_date(context.step_context, self._runtime.zone)
        if not context.has_asset_partitions:
            version = self._write_one(context, dataset, value, VersionKey(default))
            context.add_output_metadata(version_metadata(version))
            return
        keys = list(context.asset_partition_keys)
        frames = self._by_key(dataset, value, keys)
        for key in keys:
            moment = moment_of_key(key, context.asset_partitions_def, default)
            version = self._write_one(context, dataset, frames[key], moment, key)
            # Metadata of an output applies to all partitions; this is for one.
            context.step_context.add_asset_metadata(
                version_metadata(version), context.asset_key, partition_key=key
            )

    def _by_key(self, dataset: str, value: Any, keys: Sequence[str]) -> Mapping[str, Any]:
        if isinstance(value, Mapping):
            missing = [key for key in keys if key not in value]
            unexpected = [str(key) for key in value if key not in keys]
            if missing or unexpected:
                raise KeysDifferError(dataset, missing, unexpected)
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
        moment: VersionKey,
        key: str | None = None,
    ) -> OutputVersion:
        attempt = context.step_context.previous_attempt_count + 1
        wish = FrameTarget(
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
        kind = frame_kind(type(value))
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
            version = last_built(context.instance, context.asset_key, keys)
            self._record_reads(context, dataset, [version.tag])
            return convert_frame(version.frame(workspace, spark, keys), kind)
        wanted, until = self._wanted(context)
        arrivals: list[Arrival] = []
        if dataset not in self._runtime.produced:
            arrivals = receive_deliveries(workspace, spark, dataset, _days(wanted, until))
        planned = find_input(workspace, dataset, wanted, until=until, arrivals=arrivals)
        self._record_reads(context, dataset, planned.tags)
        return convert_frame(read_input(workspace, spark, planned), kind)

    def _wanted(self, context: InputContext) -> tuple[list[VersionKey], date]:
        """Return the version keys to read, and the latest allowed business date."""
        step = context.step_context
        until = run_date(step, self._runtime.zone)
        if not context.has_asset_partitions:
            return [], until
        definition = context.asset_partitions_def
        keys = context.asset_partition_keys
        return [moment_of_key(key, definition, until) for key in keys], until

    def _record_reads(self, context: InputContext, dataset: str, tags: Sequence[str]) -> None:
        self._add_reads_metadata(context, [(dataset, tag) for tag in tags])
        context.log.info(f"{dataset}: reading {', '.join(tags)}")

    def _add_reads_metadata(self, context: InputContext, reads: Sequence[Read]) -> None:
        """Record the versions that were read in the metadata of every output of the step."""
        step = context.step_context
        # In a run for a range, the step runs for one partition after the other.
        key = step.partition_key if step.has_partition_key else ""
        known = self._reads.setdefault(f"{step.run_id}/{step.step.key}/{key}", [])
        known += [read for read in reads if read not in known]
        for output in step.op_def.output_defs:
            step.add_output_metadata({READS: reads_metadata(known)}, output_name=output.name)


def floe_io_manager(site: "Site") -> "IOManagerDefinition":
    """Return the default I/O manager of assets."""

    @io_manager(
        required_resource_keys={RESOURCE},
        description="Writes returned frames as versions, and reads versions as frames.",
    )
    def manager(context: InitResourceContext) -> FloeIOManager:
        folder = site.state_dir / "dagster" / "values"
        values = FilesystemIOManager(base_dir=str(folder)).create_io_manager(context)
        return FloeIOManager(getattr(context.resources, RESOURCE), values)

    return manager


def _kind(context: InputContext, dataset: str) -> Kind:
    """Return the kind of frame that a parameter is annotated with; Spark by default."""
    wanted = context.dagster_type.typing_type
    if context.dagster_type.is_any or wanted in (None, Any):
        return "spark"
    kind = frame_kind(wanted) if isinstance(wanted, type) else None
    if kind is None:
        name = getattr(wanted, "__name__", str(wanted))
        raise WrongParameterTypeError(context.name, dataset, name)
    return kind


def _days(wanted: Sequence[VersionKey], until: date) -> list[date]:
    return [moment.business_date for moment in wanted] or [until]


@contextmanager
def _errors_as_failure() -> Iterator[None]:
    """Report floe's errors as one sentence, without a stack trace."""
    try:
        yield
    except FloeError as error:
        raise Failure(str(error)) from None


def build_io_manager(loading: Loading, parts: Parts) -> Parts:
    """Add the project's runtime and the default I/O manager as resources."""
    site = loading.site
    produced = {
        dataset_of_dagster_key(list(spec.key.path)): spec for spec in _project_assets(parts)
    }
    undeclared = {
        name: _declaration(spec)
        for name, spec in produced.items()
        if name not in site.spec.datasets
    }
    models = frozenset(name for name, spec in produced.items() if MATERIALIZED in spec.metadata)
    resources = {
        RESOURCE: runtime_resource(site, undeclared, produced, models),
        "io_manager": floe_io_manager(site),
    }
    return replace(parts, resources={**resources, **parts.resources})


def _project_assets(parts: Parts) -> Iterator[AssetSpec]:
    for asset in parts.assets:
        if isinstance(asset, AssetsDefinition) and asset.is_executable:
            yield from asset.specs


def _declaration(spec: AssetSpec) -> DatasetSpec:
    """Return the declaration of an undeclared dataset: a lake table."""
    column = spec.metadata.get(PARTITION_COLUMN)
    return DatasetSpec(
        description=spec.description or "",
        partition_column=None if column is None else str(getattr(column, "value", column)),
    )
