"""What the stable name of a dataset shows, by what the catalog knows of versions that floe keeps.

A version carries a note of the format that keeps it. One that is retracted while the stable name
shows it gets a second note, in the same transaction: whoever can reach the data finishes from that.
"""

from collections.abc import Mapping
from typing import Any

from sqlalchemy.orm import Session

from floe.catalog.retention import iter_ready, ready_of_same_key
from floe.catalog.tables import DatasetVersion
from floe.catalog.versions import READY, retract_version

OWN = "floe"
"""The part of a version's metadata that is the format's own note; the rest is others'."""
PENDING = "pending_show"
"""The note on a retracted version that the stable name may still show it."""


def details_of(version: DatasetVersion) -> Mapping[str, Any]:
    """Return what the format noted of a version."""
    own = (version.metadata_json or {}).get(OWN)
    return own if isinstance(own, dict) else {}


def with_details(version: DatasetVersion, details: Mapping[str, Any]) -> dict[str, Any]:
    """Return a version's metadata with the format's note renewed."""
    return {**(version.metadata_json or {}), OWN: dict(details)}


def is_made_here(version: DatasetVersion) -> bool:
    """Tell whether floe keeps a version: whether a format of its own noted where."""
    return OWN in (version.metadata_json or {})


def is_pending(version: DatasetVersion) -> bool:
    """Tell whether the stable name may still show a version that is retracted."""
    return PENDING in details_of(version)


def take_back(
    session: Session, version: DatasetVersion, *, reason: str, actor: str | None = None
) -> DatasetVersion | None:
    """Retract a version, with a note where the stable name has to follow.

    Returns the one that is READY again in its place, if any.
    """
    shown = is_shown(session, version)
    previous = retract_version(session, version, reason=reason, actor=actor)
    if shown:
        version.metadata_json = with_details(version, {**details_of(version), PENDING: True})
    return previous


def is_shown(session: Session, version: DatasetVersion) -> bool:
    """Tell whether the stable name shows a version, or its partition."""
    if version.state != READY or not _has_name(version):
        return False
    shown = find_shown(session, version)
    return shown is not None and shown.dataset_version_id == version.dataset_version_id


def find_shown(session: Session, version: DatasetVersion) -> DatasetVersion | None:
    """Return what the stable name has to show: all of it, or in the partition of a version."""
    details = details_of(version)
    if not is_whole(version):
        return ready_of_same_key(session, version)
    # A table that is replaced shows its newest date; one that is added to, what was added last.
    by_date = details.get("mode", "replace") == "replace"
    ready = iter_ready(session, version.dataset_id, by_date=by_date)
    return next((one for one in ready if _has_name(one)), None)


def is_whole(version: DatasetVersion) -> bool:
    """Tell whether a version is all of its dataset, not a partition of it."""
    details = details_of(version)
    return bool(details.get("whole", details.get("mode") != "overwrite_partition"))


def _has_name(version: DatasetVersion) -> bool:
    # A delivery and an extract stay where they are: no stable name leads to them.
    details = details_of(version)
    apart = details.get("delivered") or details.get("extract")
    return is_made_here(version) and not apart
