"""Measure what a write writes while it writes, without another scan."""

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Counted:
    """A frame that counts its rows as they pass, and whatever else is asked for."""

    def __init__(self, frame: "DataFrame", **measures: str) -> None:
        from pyspark.sql.connect import functions as F  # noqa: N812
        from pyspark.sql.connect.observation import Observation

        self._source = frame
        self._observation = cast("Any", Observation())
        self._asked = {"rows": "count(1)", **measures}
        columns = [F.expr(sql).alias(name) for name, sql in self._asked.items()]
        self.frame: DataFrame = frame.observe(self._observation, *columns)

    @property
    def measured(self) -> dict[str, Any]:
        """What was measured; empty until the frame was written."""
        return dict(self._observation.get)

    @property
    def rows(self) -> int:
        """The rows that passed; counted anew where Spark's answer came without its measures."""
        return int(self.measured_in(self._source)["rows"])

    def measured_in(self, written: "DataFrame") -> dict[str, Any]:
        """What was measured; where Spark's answer came without it, in what was written."""
        if measured := self.measured:
            return measured
        columns = [f"{sql} AS {name}" for name, sql in self._asked.items()]
        (row,) = written.selectExpr(*columns).collect()
        return dict(row.asDict())
