"""Which code runs an engine."""

from floe.execution.engines.contract import Engine
from floe.spec.processes import Engine as EngineName


def engine_named(name: EngineName) -> Engine:
    """Return the code of an engine. Nothing is imported before a process needs it."""
    if name == "spark_sql":
        from floe.execution.engines.spark_sql import SparkSqlEngine

        return SparkSqlEngine()
    if name == "pyspark":
        from floe.execution.engines.pyspark import PySparkEngine

        return PySparkEngine()
    if name == "python":
        from floe.execution.engines.python import PythonEngine

        return PythonEngine()
    if name == "command":
        from floe.execution.engines.command import CommandEngine

        return CommandEngine()
    from floe.execution.engines.database import DatabaseEngine

    return DatabaseEngine()
