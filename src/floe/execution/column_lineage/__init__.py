"""From the SQL of a process to column lineage. Pure: no Spark, no catalog.

`trace` reads the steps of a process on the real schemas of its inputs, `to_facet` says what it
found as OpenLineage does. What cannot be known is said to be unknown, with the reason.
"""

from floe.execution.column_lineage.facets import to_facet
from floe.execution.column_lineage.model import ColumnLineage, OutputLineage, Source, Use
from floe.execution.column_lineage.tracing import SqlStep, trace

__all__ = ["ColumnLineage", "OutputLineage", "Source", "SqlStep", "Use", "to_facet", "trace"]
