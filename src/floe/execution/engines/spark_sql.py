"""Spark SQL: one query, or named steps that can read earlier steps."""

from floe.execution.engines.contract import Outputs, Work
from floe.execution.engines.steps import run_steps
from floe.execution.spark.queries import query


class SparkSqlEngine:
    """Runs the `sql` or the `steps` of a process."""

    def run(self, work: Work) -> Outputs:
        """Return the lazy result of the query, or of the steps named like the outputs."""
        if work.spec.sql is not None:
            (alias,) = work.spec.outputs
            sql = work.workspace.site.read_text(work.spec.sql)
            return {alias: query(work.spark, sql, work.bound, work.frames)}
        return run_steps(work)
