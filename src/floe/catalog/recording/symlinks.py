"""Symlinks: two names of one dataset become one, before anything is written under either."""

from collections.abc import Sequence

from sqlalchemy import Connection, select
from sqlalchemy.orm import Session

from floe.catalog.datasets import ACTIVE, add_alias, new_dataset
from floe.catalog.joining import join_datasets
from floe.catalog.recording.claims import EventClaim
from floe.catalog.recording.memory import Memory
from floe.catalog.recording.names import OBSERVED_BY
from floe.catalog.stores import Store
from floe.catalog.tables import Dataset, DatasetAlias
from floe.spec.dates import DEFAULT_RULES, DateRules
from floe.spec.identity import DatasetId

Name = tuple[str, str]


def link_names(
    connection: Connection,
    store: Store,
    memory: Memory,
    claims: Sequence[EventClaim],
    dates: DateRules = DEFAULT_RULES,
) -> None:
    """Make every symlink that is not known yet an alias, or join the two datasets it names."""
    links = [
        ((dataset.namespace, dataset.name), other)
        for claim in claims
        for dataset in claim.datasets
        for other in dataset.symlinks
        if other != (dataset.namespace, dataset.name)
    ]
    new = sorted({link for link in links if link not in memory.links})
    if not new:
        return
    with Session(
        connection, info={"store": store}, join_transaction_mode="rollback_only"
    ) as session:
        for name, other in new:
            _link(session, name, other, dates)
        session.flush()
    # Numbers may have gone: what is known of names is read again.
    memory.datasets.forget()
    for link in new:
        memory.links.put(link, True)


def _link(session: Session, name: Name, other: Name, dates: DateRules) -> None:
    first, second = _find(session, name, dates), _find(session, other, dates)
    if first is None and second is None:
        dated = dates.fold(name[1])
        stored = (name[0], dated.name) if dated else name
        first = new_dataset(*stored, status=ACTIVE, actor=OBSERVED_BY)
        session.add(first)
        session.flush()
    if first is not None and second is not None:
        if first.dataset_id != second.dataset_id:
            join_datasets(session, first, second)
        return
    known, alias = (first, other) if first is not None else (second, name)
    if known is not None:
        add_alias(session, known.dataset_id, *alias)
        session.flush()


def _find(session: Session, name: Name, dates: DateRules) -> Dataset | None:
    """Find the dataset of a name as events do: one with a date in it is stored without."""
    dated = dates.fold(name[1])
    dataset = _find_exact(session, name)
    if dated is None or (dataset is not None and _is_owned(dataset, name)):
        return dataset
    return _find_exact(session, (name[0], dated.name))


def _is_owned(dataset: Dataset, name: Name) -> bool:
    is_alias = dataset.full_name != DatasetId(*name).full_name
    return is_alias or dataset.project_id is not None or dataset.curated


def _find_exact(session: Session, name: Name) -> Dataset | None:
    full_name = DatasetId(*name).full_name
    dataset = session.scalar(select(Dataset).where(Dataset.full_name == full_name))
    if dataset is not None:
        return dataset
    alias = session.get(DatasetAlias, name)
    return None if alias is None else session.get_one(Dataset, alias.dataset_id)
