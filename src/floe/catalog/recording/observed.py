"""Facets that hold until a newer one comes: description, owner, tags, technology, life."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from floe.catalog.datasets import ACTIVE, DEPRECATED
from floe.catalog.edges import DATASET, PROCESS
from floe.catalog.recording.facets import (
    Documentation,
    JobType,
    LifecycleStateChange,
    Ownership,
)
from floe.catalog.recording.lenient import read_facet
from floe.catalog.recording.merges import FACETS
from floe.catalog.recording.scope import Recording
from floe.catalog.stores.merging import Answer, Assign, Row, Written

Owner = tuple[str, int]
# What is declared, or was said by hand, stands above what events say.
UNSETTLED = {DATASET: "project_id IS NULL AND curated = 'N'", PROCESS: "project_id IS NULL"}
SHOWN = frozenset({"documentation", "ownership", "jobType", "lifecycleStateChange"})


@dataclass
class Shown:
    """Facets that were written, and the columns that are still to follow them."""

    written: Answer
    postponed: list[tuple[Assign, list[tuple[int, str]]]] = field(default_factory=list)


def record_facets(recording: Recording) -> Shown:
    """Keep the newest of each facet, and let it show where nobody else has said what holds."""
    newest: dict[tuple[str, int, str], tuple[Any, ...]] = {}
    for claim in recording.claims:
        if claim.process_facets:
            _gather(newest, (PROCESS, recording.process_id(claim)), claim.process_facets, claim.at)
        for dataset in claim.datasets:
            if dataset.facets:
                number = recording.dataset_id(dataset.namespace, dataset.name)
                _gather(newest, (DATASET, number), dataset.facets, claim.at)
    rows = [
        (*key, digest, recording.moment(at), body)
        for key, (at, digest, body) in sorted(newest.items())
    ]
    shown = Shown(recording.merge_returning(FACETS, rows))
    for assign, values in _assignments(rows):
        if not recording.merging.assign_written(
            recording.connection, assign, values, shown.written
        ):
            shown.postponed.append((assign, values))
    return shown


def _assignments(rows: Iterable[Row]) -> Iterable[tuple[Assign, list[tuple[int, str]]]]:
    values: dict[tuple[str, str, str], list[tuple[int, str]]] = {}
    for owner_type, owner_id, facet, *_, body in rows:
        for column, value in _columns(owner_type, facet, body).items():
            values.setdefault((owner_type, facet, column), []).append((owner_id, value))
    for (owner_type, facet, column), given in values.items():
        table = owner_type.lower()
        written = Written("owner_id", (("owner_type", owner_type), ("facet", facet)))
        yield Assign(table, f"{table}_id", column, UNSETTLED[owner_type], written), given


def show_postponed(recording: Recording, shown: Shown) -> None:
    """Let the facets show that had to wait for the answer."""
    for assign, values in shown.postponed:
        assert assign.written is not None
        numbers = assign.written.numbers(FACETS.returning, shown.written.fetchall())
        rows = [(number, value) for number, value in values if number in numbers]
        recording.merging.assign(recording.connection, assign, rows)


def list_reworded(shown: Shown) -> set[int]:
    """The datasets of which facets that show were written. All answers have come by then."""
    return {
        owner_id
        for owner_type, owner_id, facet in shown.written.fetchall()
        if owner_type == DATASET and facet in SHOWN
    }


def _gather(
    newest: dict[tuple[str, int, str], tuple[Any, ...]],
    owner: Owner,
    facets: Mapping[str, str],
    at: Any,
) -> None:
    for facet, body in facets.items():
        digest = hashlib.blake2b(body.encode(), digest_size=16).hexdigest()
        known = newest.get((*owner, facet))
        if known is None or (at, digest) > known[:2]:
            newest[(*owner, facet)] = (at, digest, body)


def _columns(owner_type: str, facet: str, text: str) -> dict[str, str]:
    """The columns that a facet fills."""
    if facet == "documentation":
        return _filled("description", read_facet(text, Documentation).description, 100_000)
    if facet == "ownership":
        column = "owner_team" if owner_type == DATASET else "team"
        return _filled(column, _owner(read_facet(text, Ownership)), 200)
    if facet == "jobType":
        return _filled("technology", read_facet(text, JobType).integration, 50)
    if facet == "lifecycleStateChange":
        change = read_facet(text, LifecycleStateChange).change
        return _filled("status", change and (DEPRECATED if change == "DROP" else ACTIVE), 20)
    return {}


def _filled(column: str, value: str, longest: int) -> dict[str, str]:
    return {column: value[:longest]} if value else {}


def _owner(facet: Ownership) -> str:
    # Owners are often written as team:credit-risk.
    return next((owner.name.removeprefix("team:") for owner in facet.owners if owner.name), "")
