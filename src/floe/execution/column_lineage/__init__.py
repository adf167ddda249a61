"""From the SQL of a process, or from Spark's plan of it, to column lineage. Pure: no catalog.

`trace` reads the steps of a process on the real schemas of its inputs, `trace_plan` what Spark
says of a frame that a function made, `to_facet` says what they found as OpenLineage does. What
cannot be known is said to be unknown, with the reason.
"""

from floe.execution.column_lineage.facets import to_facet
from floe.execution.column_lineage.missing import check_columns, find_repeated
from floe.execution.column_lineage.model import ColumnLineage, OutputLineage, Source, Use
from floe.execution.column_lineage.plans import INPUT_PREFIX, trace_plan
from floe.execution.column_lineage.tracing import SqlStep, trace, with_declared

__all__ = [
    "INPUT_PREFIX",
    "ColumnLineage",
    "OutputLineage",
    "Source",
    "SqlStep",
    "Use",
    "check_columns",
    "find_repeated",
    "to_facet",
    "trace",
    "trace_plan",
    "with_declared",
]
