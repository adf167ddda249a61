"""Evaluate the lists under `selection:`, which select the assets of a job.

The entries of a list are a union. To exclude assets, write it within one entry:
`group:bronze and not tag:slow`.
"""

from floe.orchestration.selection.grammar import SelectionError
from floe.orchestration.selection.graph import AssetGraph, Keys, name_of

__all__ = ["AssetGraph", "Keys", "SelectionError", "name_of"]
