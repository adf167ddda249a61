"""Which models take part: `select` and `exclude` of the transform, in dbt's own words."""

from collections.abc import Set

from floe.orchestration.dbt.invoking import invoke, reason
from floe.orchestration.dbt.nodes import Manifest
from floe.orchestration.dbt.project import TRANSFORM, DbtProject
from floe.orchestration.loading import Loading


def selected_ids(loading: Loading, project: DbtProject, manifest: Manifest) -> Set[str] | None:
    """Return the nodes that are selected, by dbt's own ids; None where nothing narrows them."""
    select, exclude = project.transform.select, project.transform.exclude
    if not select and not exclude:
        return None
    command = ["ls", "--output", "json", "--output-keys", "unique_id", "--quiet"]
    command += [word for one in select for word in ("--select", one)]
    command += [word for one in exclude for word in ("--exclude", one)]
    result = invoke(project, command)
    key = (*TRANSFORM, "select" if select else "exclude")
    if not result.success:
        raise loading.refusal(key, f"dbt does not understand it: {reason(result)}", "Correct it.")
    listed = [str(line) for line in result.result or ()]  # type: ignore[union-attr]
    found = {name for line in listed for name in [_unique_id(line)] if name in manifest["nodes"]}
    if not found:
        raise loading.refusal(key, "selects no model", "List what there is with: dbt ls.")
    return found


def _unique_id(line: str) -> str:
    import json

    return str(json.loads(line)["unique_id"])
