"""Engines compute the outputs of a process. One file each."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from floe.execution.engines.contract import Engine
    from floe.spec.processes import Engine as EngineName


def engine_named(name: "EngineName") -> "Engine":
    """Return an engine by name; imported only when a process needs it."""
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
