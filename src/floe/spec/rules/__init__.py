"""What the models alone cannot know: references between declarations, and their consistency."""

from collections.abc import Iterator

from floe.spec.findings import Problem
from floe.spec.rules.calendars import check_calendars
from floe.spec.rules.datasets import check_datasets
from floe.spec.rules.draft import Draft
from floe.spec.rules.flow import check_flow
from floe.spec.rules.governance import check_governance
from floe.spec.rules.orchestration import check_orchestration
from floe.spec.rules.partitions import check_partitions
from floe.spec.rules.platforms import check_platform, check_profiles
from floe.spec.rules.processes import check_processes

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
