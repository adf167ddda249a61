"""Python: a function of pandas DataFrames, for data that fits in memory."""

from typing import TYPE_CHECKING, Any

from floe.execution.engines.contract import Outputs, Work
from floe.execution.engines.function_calls import InvalidFunctionError, call, outputs_by_alias
from floe.execution.frames import frame_kind, spark_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class PythonEngine:
    """Runs a `function` of pandas DataFrames; returns pandas, Arrow or Spark frames."""

    def run(self, work: Work) -> Outputs:
        """Fetch the inputs, call the function, and return its results."""
        assert work.spec.function is not None
        frames = {alias: frame.toPandas() for alias, frame in work.frames.items()}
        for alias, frame in frames.items():
            work.log.say(f"input {alias}: {len(frame):,} rows fetched")
        result = call(work, work.spec.function, frames)
        outputs = outputs_by_alias(work, work.spec.function, result)
        return {alias: _to_spark(work, alias, output) for alias, output in outputs.items()}


def _to_spark(work: Work, alias: str, result: Any) -> "DataFrame":
    kind = frame_kind(type(result))
    if kind is None:
        reason = f"returned {type(result).__name__} for '{alias}' instead of a DataFrame"
        raise InvalidFunctionError(work.process, str(work.spec.function), reason)
    if kind == "spark":
        frame: DataFrame = result
        return frame
    dataset = work.workspace.dataset(work.spec.outputs[alias].dataset)
    return spark_frame(work.spark, result, dataset)
