"""Partitions that were made once and are no keys any more, since their definition has changed."""

import hashlib
import logging
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from dagster import AssetKey, DagsterInstance, partition_loading_context

from floe.orchestration.instances import HOME
from floe.orchestration.loading import Loading
from floe.orchestration.parts import AnyPartitions, Parts
from floe.orchestration.selection import name_of
from floe.settings import make_private_file

_LOG = logging.getLogger("floe")
_EXAMPLES = 3


def partition_drift(instance: DagsterInstance, parts: Parts) -> list[str]:
    """Say for which assets partitions were made that their definition no longer has."""
    known = set(instance.all_asset_keys())
    with partition_loading_context(dynamic_partitions_store=instance):
        return list(_sentences(instance, parts, known))


def _sentences(instance: DagsterInstance, parts: Parts, known: set[AssetKey]) -> Iterator[str]:
    keys_of: dict[AnyPartitions, set[str]] = {}
    for key in sorted(known & parts.specs.keys()):
        made = instance.get_materialized_partitions(key)
        partitions = parts.specs[key].partitions_def
        if partitions is not None and partitions not in keys_of:
            keys_of[partitions] = set(partitions.get_partition_keys())
        gone = sorted(set(made) - (keys_of[partitions] if partitions is not None else set()))
        if gone:
            has = "has no partitions any more" if partitions is None else "has other partitions now"
            examples = ", ".join(gone[:_EXAMPLES]) + (", …" if len(gone) > _EXAMPLES else "")
            yield (
                f"'{name_of(key)}' {has}: {len(gone):,} of {len(made):,} that were made are no "
                f"keys of it ({examples}). They stay where they are, and no run reaches them."
            )


def report_drift(loading: Loading, parts: Parts) -> Parts:
    """Log drift before anything runs, where Dagster's memory is at hand.

    Every run loads the project too: who finds all in order notes it, and the next ones look again
    only when a definition has changed.
    """
    home = os.environ.get(HOME)
    if home is None or not Path(home).is_dir():
        return parts
    noted = loading.site.state_dir / "partitions.sha256"
    now = fingerprint(parts)
    if noted.is_file() and noted.read_text(encoding="utf-8") == now:
        return parts
    with DagsterInstance.get() as instance:
        drift = partition_drift(instance, parts)
    for sentence in drift:
        _LOG.warning(sentence)
    if not drift:
        # A project on a disk that cannot be written to is looked at each time.
        with suppress(OSError):
            make_private_file(noted)
            noted.write_text(now, encoding="utf-8")
    return parts


def fingerprint(parts: Parts) -> str:
    """Return what changes when the partitions of any asset do; keys that come and go do not."""
    lines = sorted(f"{name_of(key)} {spec.partitions_def!r}" for key, spec in parts.specs.items())
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
