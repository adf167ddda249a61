"""Frames are recognised by class name, without importing their libraries."""

import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql.connect.dataframe import DataFrame

from floe.execution.frames import frame_kind


def test_spark_pandas_and_arrow_frames_are_recognised() -> None:
    assert [frame_kind(cls) for cls in (DataFrame, pd.DataFrame, pa.Table)] == [
        "spark",
        "pandas",
        "arrow",
    ]


def test_other_classes_are_not_frames() -> None:
    assert [frame_kind(cls) for cls in (int, dict, pd.Series, pa.RecordBatch)] == [None] * 4
