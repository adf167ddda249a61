"""Column lineage from a process's SQL or from a Spark plan. Pure: no catalog.

`trace` reads the SQL steps of a process with the real schemas of its inputs, `trace_plan` reads
Spark's plan of a frame that a function returned, and `to_facet` converts the result to
OpenLineage. What cannot be determined is reported as unknown, with the reason.
"""

from floe.execution.column_lineage.missing_columns import check_columns, find_repeated
from floe.execution.column_lineage.model import ColumnLineage, OutputLineage, Source, Use, to_facet
from floe.execution.column_lineage.plan_lineage import INPUT_PREFIX, trace_plan
from floe.execution.column_lineage.sql_lineage import SqlStep, trace, with_declared

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
