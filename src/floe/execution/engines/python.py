"""Python: a function of pandas DataFrames, for what SQL says badly and fits in memory."""

from typing import TYPE_CHECKING, Any

from floe.execution.engines.calling import WrongFunctionError, by_alias, call
from floe.execution.engines.contract import Outputs, Work
from floe.execution.frames import kind_of, spark_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class PythonEngine:
    """Runs a `function` that takes pandas DataFrames and returns pandas, Arrow or Spark ones."""

    def run(self, work: Work) -> Outputs:
        """Fetch the inputs, call the function, and hand over what it returns."""
        assert work.spec.function is not None
        frames = {alias: frame.toPandas() for alias, frame in work.frames.items()}
        for alias, frame in frames.items():
            work.log.say(f"input {alias}: {len(frame):,} rows fetched")
        result = call(work, work.spec.function, frames)
        outputs = by_alias(work, work.spec.function, result)
        return {alias: _to_spark(work, alias, one) for alias, one in outputs.items()}


def _to_spark(work: Work, alias: str, result: Any) -> "DataFrame":
    kind = kind_of(type(result))
    if kind is None:
        reason = f"returned {type(result).__name__} for '{alias}' instead of a DataFrame"
        raise WrongFunctionError(work.process, str(work.spec.function), reason)
    if kind == "spark":
        frame: DataFrame = result
        return frame
    dataset = work.workspace.dataset(work.spec.outputs[alias].dataset)
    return spark_frame(work.spark, result, dataset)
