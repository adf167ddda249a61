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
        asked = {"rows": "count(1)", **measures}
        columns = [F.expr(sql).alias(name) for name, sql in asked.items()]
        self.frame: DataFrame = frame.observe(self._observation, *columns)

    @property
    def measured(self) -> dict[str, Any]:
        """What was measured; empty until the frame was written."""
        return dict(self._observation.get)

    @property
    def rows(self) -> int:
        """The rows that passed; counted anew where Spark's answer came without its measures."""
        rows = self.measured.get("rows")
        return self._source.count() if rows is None else int(rows)
