"""Upkeep of the lake: remove what is past its retention, compact, compute statistics.

`vacuum`, `compact` and `analyze` take and return plain values, so that jobs can name them.
"""

from floe.execution.maintenance.jobs import analyze, compact, vacuum

__all__ = ["analyze", "compact", "vacuum"]
