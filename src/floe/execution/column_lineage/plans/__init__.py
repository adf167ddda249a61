"""From the analysed plan of a frame to column lineage. Pure: the plan comes as Spark's text.

A plan names each column by a number (`amount#12`) that it has nowhere else, so that values can be
followed from the inputs to the output whatever code has built the frame. What the text leaves open
is unknown: literals stand in it without quotes, and nothing is read into them.
"""

from floe.execution.column_lineage.plans.operators import INPUT_PREFIX
from floe.execution.column_lineage.plans.tracing import trace_plan

__all__ = ["INPUT_PREFIX", "trace_plan"]
