"""Say how the columns of a file differ from the declared ones."""

from collections.abc import Sequence


def column_difference(declared: Sequence[str], found: Sequence[str]) -> str:
    """Return what is missing, unknown or there twice; empty when the columns are the same."""
    known = {name.lower() for name in found}
    wanted = {name.lower() for name in declared}
    lower = [name.lower() for name in found]
    parts = {
        "missing": [name for name in declared if name.lower() not in known],
        "not declared": [name for name in found if name.lower() not in wanted],
        "given twice": sorted({name for name in lower if lower.count(name) > 1}),
    }
    return "; ".join(f"{what}: {', '.join(names)}" for what, names in parts.items() if names)
