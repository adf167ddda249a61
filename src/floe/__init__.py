"""floe: a dataset-first data platform that takes old jobs along."""

__version__ = "0.1.0"
