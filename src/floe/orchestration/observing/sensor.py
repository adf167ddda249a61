"""The sensor that observes: every few seconds it reads what has happened, and starts nothing."""

from dataclasses import replace

from dagster import (
    DefaultSensorStatus,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
)

from floe.execution.site import Site
from floe.orchestration.loading import Loading
from floe.orchestration.observing.knowledge import Knowledge, know
from floe.orchestration.observing.reader import observe
from floe.orchestration.parts import Parts
from floe.orchestration.standing import standing_workspace

SENSOR = "floe_observer"
SECONDS = 5


def build_observer(loading: Loading, parts: Parts) -> Parts:
    """Add the sensor that observes every run of the project."""
    site = loading.site
    knowledge = know(parts, site.spec.name, site.spec.timezone)
    return replace(parts, sensors=(*parts.sensors, make_observer(site, knowledge)))


def make_observer(site: Site, knowledge: Knowledge) -> SensorDefinition:
    """Return the sensor that tells the catalog of runs.

    Its cursor is stored after all was told: if Dagster dies in between, it is told again, and
    the catalog takes it once.
    """

    def evaluate(context: SensorEvaluationContext) -> SensorResult:
        origin = context.code_location_origin
        found = observe(
            context.instance,
            standing_workspace(site),
            knowledge,
            cursor=context.cursor,
            location=None if origin is None else origin.location_name,
        )
        said = f"{len(found.reports)} events of {found.runs} runs were told to the catalog."
        return SensorResult(skip_reason=said, cursor=found.cursor)

    return SensorDefinition(
        name=SENSOR,
        description="Tells the catalog of every run of an asset, a model and a check.",
        evaluation_fn=evaluate,
        minimum_interval_seconds=SECONDS,
        default_status=DefaultSensorStatus.RUNNING,
    )
