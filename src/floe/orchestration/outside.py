"""What happens outside goes into Dagster: versions of others, and that their makers failed.

A version is a materialisation, so that assets with automation and sensors of assets react to feeds
as they do to assets of the project. Dagster cannot record a failure of an asset that it does not
make: the check `floe_producer` says it, and says when all is well again.
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
    page_after,
)
from floe.catalog.versions import get_version_by_id
from floe.execution.site import Site
from floe.execution.workspace import Workspace
from floe.orchestration.loading import Loading
from floe.orchestration.metadata import PRODUCER_CHECK as CHECK
from floe.orchestration.metadata import ROWS, SIZE, VERSION
from floe.orchestration.parts import Parts
from floe.orchestration.standing import standing_workspace
from floe.orchestration.triggering import partition_keys
from floe.spec.identity import DatasetId, dataset_of_dagster_key

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

SENSOR = "floe_outside"
SECONDS = 5
PAGE = 500
POSITION, PRODUCER, PRODUCER_RUN = "floe/position", "floe/producer", "floe/producer_run"
# What was reported before somebody died is among the last that were.
LOOKED_BACK = 50

External = Mapping[AssetKey, AssetSpec]
Reported = AssetMaterialization | AssetCheckEvaluation


@dataclass(frozen=True)
class Looked:
    """What one look at the log came to."""

    position: int
    reported: int
    unfit: tuple[str, ...] = ()
    """Versions for which the partitions of their asset have no key."""


def build_outside(loading: Loading, parts: Parts) -> Parts:
    """Add the sensor that brings changes from outside in, and the checks that it reports to."""
    external = {key: spec for key, spec in parts.specs.items() if key not in parts.executable}
    if not external:
        return parts
    return replace(
        parts,
        checks=(*parts.checks, make_checks(external)),
        sensors=(*parts.sensors, make_sensor(loading.site, external)),
    )


def make_checks(external: External) -> AssetChecksDefinition:
    """Return the checks by which Dagster knows whether those who make a dataset are well.

    They are reported from outside. Whoever runs one is told what was reported last.
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
    """Return the sensor that reports what others have made, and where they failed."""

    def evaluate(context: SensorEvaluationContext) -> SensorResult:
        looked = bring_in(
            context.instance, standing_workspace(site), external, int(context.cursor or 0)
        )
        for text in looked.unfit:
            context.log.warning(text)
        said = f"{looked.reported} changes from outside were reported to Dagster."
        return SensorResult(skip_reason=said, cursor=str(looked.position))

    return SensorDefinition(
        name=SENSOR,
        description="Brings versions that others make, and their failures, into Dagster.",
        evaluation_fn=evaluate,
        minimum_interval_seconds=SECONDS,
        default_status=DefaultSensorStatus.RUNNING,
    )


def bring_in(
    instance: DagsterInstance, workspace: Workspace, external: External, after: int
) -> Looked:
    """Report what the log says after a position, in order and each once."""
    with workspace.catalog.reading() as session:
        start, end = page_after(session, after, PAGE)
        reader = _Reader(session, workspace, instance, external)
        changes: list[ReadyChange | FailedChange] = [
            *list_ready_changes(session, start, end),
            *list_failed_changes(session, start, end),
        ]
        reported = 0
        for change in sorted(changes, key=lambda one: one.position):
            for event in reader.events(change):
                instance.report_runless_asset_event(event)
                reported += 1
    return Looked(end, reported, tuple(reader.unfit))


class _Reader:
    """Turns changes into what Dagster is told, leaving out what it knows."""

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
        self.unfit: list[str] = []

    def events(self, change: ReadyChange | FailedChange) -> Iterator[Reported]:
        """Yield what is to be reported of a change."""
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
            self.unfit.append(
                f"{change.dataset} {version.version_tag} is ready, and the partitions of its asset "
                "have no such key: Dagster is not told of it."
            )
        metadata: dict[str, Any] = {
            VERSION: version.version_tag,
            ROWS: version.row_count,
            SIZE: version.size_bytes,
            POSITION: change.position,
        }
        known = {name: value for name, value in metadata.items() if value is not None}
        for partition in partitions:
            if not self._is_told(key, partition, version.version_tag):
                yield AssetMaterialization(key, partition=partition, metadata=known)
        last = _last_verdict(self._instance, AssetCheckKey(key, CHECK))
        if last is not None and not last.passed and _position(last) < change.position:
            said = f"{change.dataset} {version.version_tag} is ready."
            yield _verdict(key, change.position, said, passed=True)

    def _partitions(
        self, key: AssetKey, change: ReadyChange, partition: str | None
    ) -> Sequence[str | None]:
        found = partition_keys(
            self._external[key].partitions_def, change.business_date, self._instance
        )
        # A version of one partition says nothing of the others.
        return [one for one in found if one == partition] or found

    def _is_told(self, key: AssetKey, partition: str | None, tag: str) -> bool:
        wanted = AssetRecordsFilter(key, asset_partitions=[partition] if partition else None)
        found = self._instance.fetch_materializations(wanted, limit=LOOKED_BACK).records
        told = [one.asset_materialization for one in found]
        return any(
            one is not None
            and one.metadata.get(VERSION) is not None
            and one.metadata[VERSION].value == tag
            for one in told
        )

    def _failures(self, change: FailedChange) -> Iterator[Reported]:
        outputs = get_contract(self._session, change.process_id).outputs
        keys = [self._keys[name] for name in outputs if name in self._keys]
        if not keys:
            return
        message = ((change.facets_json or {}).get("errorMessage") or {}).get("message")
        said = f"{change.process_key} failed" + (f": {message}" if message else ".")
        more = {PRODUCER: change.process_key, PRODUCER_RUN: change.run_uuid}
        for key in keys:
            last = _last_verdict(self._instance, AssetCheckKey(key, CHECK))
            if last is None or _position(last) < change.position:
                yield _verdict(key, change.position, said, passed=False, more=more)


def _verdict(
    key: AssetKey,
    position: int,
    said: str,
    *,
    passed: bool,
    more: Mapping[str, str] = MappingProxyType({}),
) -> AssetCheckEvaluation:
    named: dict[str, Any] = {POSITION: position, **more}
    return AssetCheckEvaluation(
        asset_key=key, check_name=CHECK, passed=passed, metadata=named, description=said
    )


def _last_verdict(instance: DagsterInstance, key: AssetCheckKey) -> AssetCheckEvaluation | None:
    # Not public, and the only way to the verdicts of a check.
    found = instance.event_log_storage.get_latest_asset_check_execution_by_key([key]).get(key)
    entry = found.event if found is not None else None
    event = entry.dagster_event if entry is not None else None
    return None if event is None else event.asset_check_evaluation_data


def _position(verdict: AssetCheckEvaluation) -> int:
    found = verdict.metadata.get(POSITION)
    value = found.value if found is not None else 0
    return value if isinstance(value, int) else 0
