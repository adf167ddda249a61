"""Column lineage as OpenLineage's facet says it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from floe.execution.column_lineage.model import OutputLineage, Source, Use


def to_facet(
    traced: OutputLineage, datasets: Mapping[str, tuple[str, str]]
) -> dict[str, Any] | None:
    """Return the content of a columnLineage facet, None when nothing is known.

    `datasets` gives namespace and name of each input by its alias. Columns of which it is unknown
    where they come from are left out: the facet has no word for that. A column that comes from
    nowhere has no input fields.
    """
    fields = {
        name: {"inputFields": _input_fields(lineage.sources, datasets)}
        for name, lineage in traced.columns.items()
        if lineage.unknown is None
    }
    rows = _input_fields(traced.rows, datasets)
    if not fields and not rows:
        return None
    return {"fields": fields, "dataset": rows} if rows else {"fields": fields}


def _input_fields(
    sources: Iterable[Source], datasets: Mapping[str, tuple[str, str]]
) -> list[dict[str, Any]]:
    """One entry for each column, with all the ways it is used; always in the same order."""
    uses: defaultdict[tuple[str, str, str], set[Use]] = defaultdict(set)
    for alias, column, use in sources:
        # Two inputs may be two versions of one dataset.
        uses[(*datasets[alias], column)].add(use)
    return [
        {
            "namespace": namespace,
            "name": name,
            "field": column,
            "transformations": [_transformation(use) for use in sorted(found)],
        }
        for (namespace, name, column), found in sorted(uses.items())
    ]


def _transformation(use: Use) -> dict[str, Any]:
    return {"type": "DIRECT" if use.direct else "INDIRECT", "subtype": use.value}
