"""External assets: datasets of other systems, their new versions, and failed producers.

A new version is reported as a materialization, so automation and asset sensors react to feeds as
they do to the project's own assets. Dagster cannot record a failure of an asset that it does not
compute, so the check `floe_producer` reports failure and recovery.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from dagster import (
    AssetCheckEvaluation,
    AssetCheckKey,
    AssetCheckResult,
    AssetChecksDefinition,
    AssetCheckSpec,
    AssetExecutionContext,
    AssetKey,
    AssetMaterialization,
    AssetRecordsFilter,
    AssetSpec,
    DagsterInstance,
    DefaultSensorStatus,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    multi_asset_check,
)

from floe.catalog.processes import get_contract
from floe.catalog.readiness import (
    FailedChange,
    ReadyChange,
    list_failed_changes,
    list_ready_changes,
    page_bounds,
)
from floe.catalog.version_queries import get_version_by_id
from floe.execution.site import Site
from floe.execution.workspace import Workspace
from floe.orchestration.business_dates import keys_of_date
from floe.orchestration.loading import Loading, Parts
from floe.orchestration.metadata import PRODUCER_CHECK as CHECK
from floe.orchestration.metadata import (
    ROWS,
    SIZE,
    VERSION,
    asset_key,
    group_of,
    kinds_of,
    owners_of,
    tags_of,
)
from floe.orchestration.runtime import shared_workspace
from floe.spec import ProjectSpec
from floe.spec.identity import DatasetId, dataset_of_dagster_key

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


def build_external(loading: Loading, parts: Parts) -> Parts:
    """Add an external asset for each declared or read dataset that is no asset yet."""
    spec = loading.site.spec
    known = parts.specs
    external = (_external(spec, name) for name in _names(spec) if asset_key(name) not in known)
    return replace(parts, assets=(*parts.assets, *external))


def _names(spec: ProjectSpec) -> Iterator[str]:
    named = dict.fromkeys(spec.datasets)
    for process in spec.processes.values():
        named.update(dict.fromkeys(source.dataset for source in process.inputs.values()))
    yield from named


def _external(spec: ProjectSpec, name: str) -> AssetSpec:
    dataset = spec.datasets.get(name)
    if dataset is None:
        return AssetSpec(asset_key(name), group_name=group_of(name, None))
    return AssetSpec(
        asset_key(name),
        description=dataset.description or None,
        group_name=group_of(name, dataset),
        owners=owners_of(spec.owner_or_default(dataset.owner)),
        tags=tags_of(dataset.tags),
        kinds=kinds_of(None, dataset),
    )


SENSOR = "floe_outside"
SECONDS = 5
PAGE = 500
POSITION, PRODUCER, PRODUCER_RUN = "floe/position", "floe/producer", "floe/producer_run"
# Versions that were reported before a crash are among the latest materializations.
LOOKBACK = 50

External = Mapping[AssetKey, AssetSpec]
Reported = AssetMaterialization | AssetCheckEvaluation


@dataclass(frozen=True)
class ScanResult:
    """The result of reading the change log once."""

    position: int
    reported: int
    unmatched: tuple[str, ...] = ()
    """Warnings for versions that no partition key of their asset matches."""


def build_external_sensor(loading: Loading, parts: Parts) -> Parts:
    """Add the sensor that reports external changes, and the checks that it reports."""
    external = {key: spec for key, spec in parts.specs.items() if key not in parts.executable}
    if not external:
        return parts
    return replace(
        parts,
        checks=(*parts.checks, make_checks(external)),
        sensors=(*parts.sensors, make_sensor(loading.site, external)),
    )


def make_checks(external: External) -> AssetChecksDefinition:
    """Return the checks that show whether the producers of datasets succeeded.

    The sensor reports their results. Running a check repeats the last reported result.
    """

    @multi_asset_check(
        name="floe_producers",
        specs=[
            AssetCheckSpec(CHECK, asset=key, description="Whether its last producer succeeded.")
            for key in external
        ],
        can_subset=True,
    )
    def producers(context: AssetExecutionContext) -> Iterator[AssetCheckResult]:
        for key in context.selected_asset_check_keys:
            last = _last_verdict(context.instance, key)
            passed = last is None or last.passed
            yield AssetCheckResult(
                passed=passed,
                asset_key=key.asset_key,
                check_name=key.name,
                description=None if last is None else last.description,
                metadata={} if last is None else last.metadata,
            )

    return producers


def make_sensor(site: Site, external: External) -> SensorDefinition:
    """Return the sensor that reports external versions and failed producers."""

    def evaluate(context: SensorEvaluationContext) -> SensorResult:
        result = report_changes(
            context.instance, shared_workspace(site), external, int(context.cursor or 0)
        )
        for text in result.unmatched:
            context.log.warning(text)
        message = f"Reported {result.reported} external changes to Dagster."
        return SensorResult(skip_reason=message, cursor=str(result.position))

    return SensorDefinition(
        name=SENSOR,
        description="Reports versions and failures of external producers to Dagster.",
        evaluation_fn=evaluate,
        minimum_interval_seconds=SECONDS,
        default_status=DefaultSensorStatus.RUNNING,
    )


def report_changes(
    instance: DagsterInstance, workspace: Workspace, external: External, after: int
) -> ScanResult:
    """Report the changes after a position, in order and once each."""
    with workspace.catalog.reading() as session:
        start, end = page_bounds(session, after, PAGE)
        reader = _Reader(session, workspace, instance, external)
        changes: list[ReadyChange | FailedChange] = [
            *list_ready_changes(session, start, end),
            *list_failed_changes(session, start, end),
        ]
        reported = 0
        for change in sorted(changes, key=lambda item: item.position):
            for event in reader.events(change):
                instance.report_runless_asset_event(event)
                reported += 1
    return ScanResult(end, reported, tuple(reader.unmatched))


class _Reader:
    """Turns changes into Dagster events, without those that Dagster has already."""

    def __init__(
        self,
        session: "Session",
        workspace: Workspace,
        instance: DagsterInstance,
        external: External,
    ) -> None:
        self._session, self._workspace = session, workspace
        self._instance, self._external = instance, external
        lake = workspace.lake
        self._keys = {
            DatasetId(lake, dataset_of_dagster_key(list(key.path))).full_name: key
            for key in external
        }
        self.unmatched: list[str] = []

    def events(self, change: ReadyChange | FailedChange) -> Iterator[Reported]:
        """Yield the events of a change."""
        if isinstance(change, FailedChange):
            yield from self._failures(change)
            return
        key = self._keys.get(DatasetId(change.namespace, change.dataset).full_name)
        if key is not None:
            yield from self._version(key, change)

    def _version(self, key: AssetKey, change: ReadyChange) -> Iterator[Reported]:
        version = get_version_by_id(self._session, change.dataset_version_id)
        partitions = self._partitions(key, change, version.partition_key)
        if not partitions:
            self.unmatched.append(
                f"{change.dataset} {version.version_tag} is ready but not reported to Dagster: the "
                "partitions of its asset do not include its date."
            )
        metadata: dict[str, Any] = {
            VERSION: version.version_tag,
            ROWS: version.row_count,
            SIZE: version.size_bytes,
            POSITION: change.position,
        }
        known = {name: value for name, value in metadata.items() if value is not None}
        for partition in partitions:
            if not self._is_reported(key, partition, version.version_tag):
                yield AssetMaterialization(key, partition=partition, metadata=known)
        last = _last_verdict(self._instance, AssetCheckKey(key, CHECK))
        if last is not None and not last.passed and _position(last) < change.position:
            description = f"{change.dataset} {version.version_tag} is ready."
            yield _check_event(key, change.position, description, passed=True)

    def _partitions(
        self, key: AssetKey, change: ReadyChange, partition: str | None
    ) -> Sequence[str | None]:
        keys = keys_of_date(
            self._external[key].partitions_def, change.business_date, self._instance
        )
        # The version of one partition does not concern the others.
        return [key_of_date for key_of_date in keys if key_of_date == partition] or keys

    def _is_reported(self, key: AssetKey, partition: str | None, tag: str) -> bool:
        wanted = AssetRecordsFilter(key, asset_partitions=[partition] if partition else None)
        records = self._instance.fetch_materializations(wanted, limit=LOOKBACK).records
        reported = [materialization.asset_materialization for materialization in records]
        return any(
            materialization is not None
            and materialization.metadata.get(VERSION) is not None
            and materialization.metadata[VERSION].value == tag
            for materialization in reported
        )

    def _failures(self, change: FailedChange) -> Iterator[Reported]:
        outputs = get_contract(self._session, change.process_id).outputs
        keys = [self._keys[name] for name in outputs if name in self._keys]
        if not keys:
            return
        message = ((change.facets_json or {}).get("errorMessage") or {}).get("message")
        description = f"{change.process_key} failed" + (f": {message}" if message else ".")
        extra = {PRODUCER: change.process_key, PRODUCER_RUN: change.run_uuid}
        for key in keys:
            last = _last_verdict(self._instance, AssetCheckKey(key, CHECK))
            if last is None or _position(last) < change.position:
                yield _check_event(key, change.position, description, passed=False, extra=extra)


def _check_event(
    key: AssetKey,
    position: int,
    description: str,
    *,
    passed: bool,
    extra: Mapping[str, str] = MappingProxyType({}),
) -> AssetCheckEvaluation:
    named: dict[str, Any] = {POSITION: position, **extra}
    return AssetCheckEvaluation(
        asset_key=key, check_name=CHECK, passed=passed, metadata=named, description=description
    )


def _last_verdict(instance: DagsterInstance, key: AssetCheckKey) -> AssetCheckEvaluation | None:
    # Not public, but the only way to read the result of a check.
    record = instance.event_log_storage.get_latest_asset_check_execution_by_key([key]).get(key)
    entry = record.event if record is not None else None
    event = entry.dagster_event if entry is not None else None
    return None if event is None else event.asset_check_evaluation_data


def _position(verdict: AssetCheckEvaluation) -> int:
    entry = verdict.metadata.get(POSITION)
    value = entry.value if entry is not None else 0
    return value if isinstance(value, int) else 0
