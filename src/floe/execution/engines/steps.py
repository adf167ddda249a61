"""Run the named steps of a process; record what each step reads."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from floe import clock
from floe.execution.engines.contract import Outputs, StepRecord, Work
from floe.execution.engines.function_calls import call_for_frame
from floe.execution.spark.queries import query, tables_in
from floe.spec.processes import Step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def run_steps(work: Work) -> Outputs:
    """Build each step from the inputs and earlier steps."""
    seen: dict[str, DataFrame] = dict(work.frames)
    last = work.spec.steps[-1].name
    readers = _readers(work)
    for step in work.spec.steps:
        record = StepRecord(step.name, depends_on=_names_in(work, step, seen))
        work.steps.append(record)
        frame = _build(work, step, seen)
        if step.cache:
            frame = frame.cache()
            record.rows = frame.count()
        elif step.name != last and readers[step.name]:
            frame = _counted(frame, record)
        if readers[step.name] > 1:
            frame = _as_view(work, record, frame)
        seen[step.name] = frame
        record.ended_at = clock.now()
        work.log.say(f"step {step.name}: built on {', '.join(record.depends_on) or 'nothing'}")
    names = {alias: alias if alias in seen else last for alias in work.spec.outputs}
    return {alias: seen[name] for alias, name in names.items()}


def _readers(work: Work) -> Counter[str]:
    """Count how many steps may read each step."""
    known = [step.name for step in work.spec.steps]
    return Counter(name for step in work.spec.steps for name in _names_in(work, step, known))


def _as_view(work: Work, record: StepRecord, frame: "DataFrame") -> "DataFrame":
    """Make a step that several others read a temporary view on the server.

    Otherwise each reader's plan would contain it again. Its row counter is inside the view, so the
    query that reads the view carries the counter.
    """
    view = f"floe_step_{record.name}"
    frame.createOrReplaceTempView(view)
    counters = [] if record.counter is None else [record.counter]
    return query(work.spark, f"SELECT * FROM `{view}`", counters=counters)  # noqa: S608


def _build(work: Work, step: Step, seen: Mapping[str, "DataFrame"]) -> "DataFrame":
    if step.function is not None:
        return call_for_frame(work, step.function, seen)
    text = work.workspace.site.read_text(str(step.sql))
    return query(work.spark, *_within(step, text, seen, _names_in(work, step, seen), work.bound))


def _within(
    step: Step,
    text: str,
    seen: Mapping[str, "DataFrame"],
    names: Sequence[str],
    bound: Mapping[str, Any],
) -> tuple[str, Mapping[str, Any], dict[str, "DataFrame"]]:
    """Give each frame a unique view name, and alias it to its own name in the query.

    Otherwise names clash: the server drops an inner query's views before it plans the outer one.
    """
    inner = {name: f"floe_{step.name}_{name}" for name in names}
    if not inner:
        return text, bound, {}
    tables = ", ".join(f"`{name}` AS (SELECT * FROM `{own}`)" for name, own in inner.items())  # noqa: S608
    sql = f"WITH {tables}\nSELECT * FROM (\n{text.strip().rstrip(';')}\n)"
    return sql, bound, {own: seen[name] for name, own in inner.items()}


def _counted(frame: "DataFrame", record: StepRecord) -> "DataFrame":
    """Count the rows as they pass, without another scan."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.connect.observation import Observation

    record.counter = Observation(f"floe_step_{record.name}")
    return frame.observe(record.counter, F.count(F.lit(1)).alias("rows"))


def _names_in(work: Work, step: Step, seen: Iterable[str]) -> list[str]:
    """Return what a step reads: the tables in its SQL; for a function, all it may take."""
    if step.sql is None:
        return [name for name in seen if name != step.name]
    named = tables_in(work.workspace.site.read_text(step.sql))
    return [name for name in seen if name.lower() in named]
