"""Frames are known by their classes, without importing any of them."""

import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql.connect.dataframe import DataFrame

from floe.execution.frames import kind_of


def test_frames_of_spark_pandas_and_arrow_are_known() -> None:
    assert [kind_of(one) for one in (DataFrame, pd.DataFrame, pa.Table)] == [
        "spark",
        "pandas",
        "arrow",
    ]


def test_anything_else_is_no_frame() -> None:
    assert [kind_of(one) for one in (int, dict, pd.Series, pa.RecordBatch)] == [None] * 4
