"""Leases: exclusive rights of one holder that expire by themselves."""

from datetime import timedelta

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from floe import clock
from floe.catalog.stores import store_of
from floe.catalog.tables import Lease


def acquire_lease(session: Session, name: str, holder: str, lasts: timedelta) -> int | None:
    """Acquire or renew a lease; return its fence, or None if another holder has it.

    The fence grows with every change of holder, so a writer whose lease expired has an old fence
    and can be refused.
    """
    now = clock.now()
    free = {"name": name, "holder": "", "fence": 0, "acquired_at": now, "expires_at": now}
    store_of(session).upsert(session, Lease, [free], key=("name",), update=())
    lease = session.scalars(select(Lease).where(Lease.name == name).with_for_update()).one()
    session.refresh(lease)
    if lease.holder == holder and lease.expires_at > now:
        lease.expires_at = now + lasts
        return lease.fence
    if lease.holder and lease.expires_at > now:
        return None
    lease.holder, lease.acquired_at, lease.expires_at = holder, now, now + lasts
    lease.fence += 1
    return lease.fence


def renew_lease(session: Session, name: str, holder: str, fence: int, lasts: timedelta) -> bool:
    """Extend a lease; return False if another holder has acquired it."""
    renewed = session.execute(
        update(Lease)
        .where(Lease.name == name, Lease.holder == holder, Lease.fence == fence)
        .values(expires_at=clock.now() + lasts)
    )
    return bool(renewed.rowcount)  # type: ignore[attr-defined]


def release_lease(session: Session, name: str, holder: str, fence: int) -> None:
    """Release a lease early. The row is kept so that its fence keeps growing."""
    session.execute(
        update(Lease)
        .where(Lease.name == name, Lease.holder == holder, Lease.fence == fence)
        .values(holder="", expires_at=clock.now())
    )


def read_lease(session: Session, name: str) -> Lease | None:
    """Return a lease's current row, or None."""
    return session.scalars(select(Lease).where(Lease.name == name)).first()


def is_held(lease: Lease | None) -> bool:
    """Return whether a lease has a holder and has not expired."""
    return lease is not None and bool(lease.holder) and lease.expires_at > clock.now()
