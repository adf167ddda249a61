"""PySpark: a function of DataFrames, which it takes by the names of its parameters."""

from floe.execution.engines.calling import by_alias, call
from floe.execution.engines.contract import Outputs, Work
from floe.execution.engines.steps import run_steps


class PySparkEngine:
    """Runs a `function` that takes and returns DataFrames."""

    def run(self, work: Work) -> Outputs:
        """Call the function; several outputs come back as a dictionary by alias."""
        if work.spec.steps:
            return run_steps(work)
        assert work.spec.function is not None
        result = call(work, work.spec.function, {**work.frames, "spark": work.spark})
        return by_alias(work, work.spec.function, result)
