"""PySpark: a function of DataFrames, passed by parameter name."""

from floe.execution.engines.contract import Outputs, Work
from floe.execution.engines.function_calls import call, outputs_by_alias
from floe.execution.engines.steps import run_steps


class PySparkEngine:
    """Runs a `function` that takes and returns DataFrames."""

    def run(self, work: Work) -> Outputs:
        """Call the function; several outputs come back as a dictionary by alias."""
        if work.spec.steps:
            return run_steps(work)
        assert work.spec.function is not None
        result = call(work, work.spec.function, {**work.frames, "spark": work.spark})
        return outputs_by_alias(work, work.spec.function, result)
