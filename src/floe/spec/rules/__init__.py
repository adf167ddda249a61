"""Rules beyond the models: references between declarations, and their consistency."""

from collections.abc import Iterator

from floe.spec.findings import Problem
from floe.spec.rules.dataset_rules import check_datasets
from floe.spec.rules.draft import Draft
from floe.spec.rules.orchestration_rules import check_orchestration
from floe.spec.rules.partition_rules import check_partitions
from floe.spec.rules.process_rules import check_flow, check_processes
from floe.spec.rules.project_rules import (
    check_calendars,
    check_governance,
    check_platform,
    check_profiles,
)

__all__ = ["Draft", "check_platform", "check_profiles", "check_project"]


def check_project(draft: Draft) -> Iterator[Problem]:
    """Apply every rule to a project."""
    yield from check_calendars(draft)
    yield from check_datasets(draft)
    yield from check_processes(draft)
    yield from check_flow(draft)
    yield from check_orchestration(draft)
    yield from check_partitions(draft)
    yield from check_governance(draft)
