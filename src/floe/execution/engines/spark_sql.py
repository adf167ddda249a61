"""Spark SQL: one query, or named views of which later ones see earlier ones."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from floe import clock
from floe.execution.engines.contract import Outputs, StepRecord, Work
from floe.execution.engines.pyspark import call_for_frame
from floe.execution.spark.queries import query
from floe.execution.sql_tables import tables_in
from floe.spec.processes import Step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class SparkSqlEngine:
    """Runs the `sql` or the `steps` of a process."""

    def run(self, work: Work) -> Outputs:
        """Return the lazy result of the query, or of the steps that have the outputs' names."""
        if work.spec.sql is not None:
            (alias,) = work.spec.outputs
            sql = work.workspace.site.read_text(work.spec.sql)
            return {alias: query(work.spark, sql, work.bound, work.frames)}
        return run_steps(work)


def run_steps(work: Work) -> Outputs:
    """Build each step on the inputs and the steps before it."""
    seen: dict[str, DataFrame] = dict(work.frames)
    last = work.spec.steps[-1].name
    for step in work.spec.steps:
        record = StepRecord(step.name, depends_on=_names_in(work, step, seen))
        work.steps.append(record)
        frame = _build(work, step, seen)
        if step.cache:
            frame = frame.cache()
            record.rows = frame.count()
        elif step.name != last:
            frame = _counted(frame, record)
        seen[step.name] = frame
        record.ended_at = clock.now()
        work.log.say(f"step {step.name}: built on {', '.join(record.depends_on) or 'nothing'}")
    names = {alias: alias if alias in seen else last for alias in work.spec.outputs}
    return {alias: seen[name] for alias, name in names.items()}


def _build(work: Work, step: Step, seen: Mapping[str, "DataFrame"]) -> "DataFrame":
    if step.sql is not None:
        return query(work.spark, work.workspace.site.read_text(step.sql), work.bound, seen)
    assert step.function is not None
    return call_for_frame(work, step.function, seen)


def _counted(frame: "DataFrame", record: StepRecord) -> "DataFrame":
    """Let the rows be counted while they pass, which costs no scan of its own."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.connect.observation import Observation

    record.counter = Observation(f"floe_step_{record.name}")
    return frame.observe(record.counter, F.count(F.lit(1)).alias("rows"))


def _names_in(work: Work, step: Step, seen: Mapping[str, object]) -> list[str]:
    """Return what a step stands on: the tables its SQL names, or all that a function may take."""
    if step.sql is None:
        return list(seen)
    named = tables_in(work.workspace.site.read_text(step.sql))
    return [name for name in seen if name.lower() in named]
