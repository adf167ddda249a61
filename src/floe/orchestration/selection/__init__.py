"""What the lists under `selection:` mean: which assets a job makes.

The entries of a list are a union. To leave something out, say so within one entry:
`group:bronze and not tag:slow`.
"""

from floe.orchestration.selection.grammar import SelectionError
from floe.orchestration.selection.graph import AssetGraph, Keys, name_of

__all__ = ["AssetGraph", "Keys", "SelectionError", "name_of"]
