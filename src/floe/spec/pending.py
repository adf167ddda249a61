"""Keys that floe accepts before the part that enforces them exists."""

from collections.abc import Iterator, Sequence

from floe.spec.document import Located, locate
from floe.spec.findings import Finding, KeyPath, Problem
from floe.spec.yaml_tree import Tree

PENDING_KEYS = {
    "floe.yaml": (
        "datasets.*.sla",
        "datasets.*.feed.consumers",
        "datasets.*.owner.steward",
        "processes.*.sla",
        "processes.*.owner.steward",
        "governance.approval",
        "governance.default_owner.steward",
        "observability.notify",
    ),
    "platform.yaml": (
        "api.oidc",
        "catalog.*.retention",
        "observability.openlineage",
    ),
}
"""Paths per file; `*` is any name. Everything below a path is pending too."""


def find_pending(document: Located, pending: Sequence[str]) -> list[Finding]:
    """Return one warning for each pending key in use, at its first use."""
    warnings = []
    for key in pending:
        uses = list(_uses(document.tree, tuple(key.split(".")), ()))
        if uses:
            hint = "floe stores the value and does not act on it."
            if len(uses) > 1:
                hint += f" {key} is used {len(uses)} times."
            problem = Problem(uses[0], "not enforced yet", hint, at_key=True)
            warnings.append(locate(document, problem))
    return warnings


def _uses(tree: Tree, rest: tuple[str, ...], path: KeyPath) -> Iterator[KeyPath]:
    """Find the keys that a path with wildcards stands for."""
    if not rest:
        yield path
    elif isinstance(tree, dict):
        names = list(tree) if rest[0] == "*" else [rest[0]]
        for name in names:
            if tree.get(name) is not None:
                yield from _uses(tree[name], rest[1:], (*path, name))
