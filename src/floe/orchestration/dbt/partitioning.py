"""Only a model that dbt makes piece by piece can be made for one partition."""

from collections.abc import Iterator
from fnmatch import fnmatchcase

from dagster import AssetSpec

from floe.orchestration.dbt.models import MATERIALIZED
from floe.orchestration.loading import Loading
from floe.orchestration.parts import Parts
from floe.spec.findings import Finding, KeyPath, SpecError
from floe.spec.identity import dataset_of_dagster_key

PIECEWISE = frozenset({"incremental", "snapshot"})


def check_partitions(loading: Loading, parts: Parts) -> Parts:
    """Refuse partitions on a model that is made whole each time: one would replace the others."""
    findings = list(_find(loading, parts))
    if findings:
        raise SpecError(findings)
    return parts


def _find(loading: Loading, parts: Parts) -> Iterator[Finding]:
    for spec in parts.specs.values():
        made = spec.metadata.get(MATERIALIZED)
        if made is None or spec.partitions_def is None or made in PIECEWISE:
            continue
        dataset = dataset_of_dagster_key(list(spec.key.path))
        message = f"dbt makes '{dataset}' as a {made}: each partition would replace all of it"
        hint = "Make it incremental, or use a pattern that leaves it out."
        yield loading.finding(_declared(loading, spec), message, hint)


def _declared(loading: Loading, spec: AssetSpec) -> KeyPath:
    """Return the key that gave an asset its partitions."""
    dataset = dataset_of_dagster_key(list(spec.key.path))
    patterns = loading.site.spec.orchestration.assets
    for pattern, config in patterns.items():
        if config.partitions is not None and fnmatchcase(dataset, pattern.replace("/", ".")):
            return ("orchestration", "assets", pattern, "partitions")
    return ("orchestration", "assets")
