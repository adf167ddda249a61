"""Leases: something that one holder at a time may do, until the lease ends by itself."""

from datetime import timedelta

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from floe import clock
from floe.catalog.stores import store_of
from floe.catalog.tables import Lease


def acquire_lease(session: Session, name: str, holder: str, lasts: timedelta) -> int | None:
    """Take a lease that is free, ended or one's own; return its fence, None if another has it.

    The fence grows with every change of holder. A writer that slept past its lease carries an
    old one and can be refused.
    """
    moment = clock.now()
    ended = {"name": name, "holder": "", "fence": 0, "acquired_at": moment, "expires_at": moment}
    store_of(session).upsert(session, Lease, [ended], key=("name",), update=())
    lease = session.scalars(select(Lease).where(Lease.name == name).with_for_update()).one()
    session.refresh(lease)
    if lease.holder == holder and lease.expires_at > moment:
        lease.expires_at = moment + lasts
        return lease.fence
    if lease.holder and lease.expires_at > moment:
        return None
    lease.holder, lease.acquired_at, lease.expires_at = holder, moment, moment + lasts
    lease.fence += 1
    return lease.fence


def renew_lease(session: Session, name: str, holder: str, fence: int, lasts: timedelta) -> bool:
    """Keep a lease for longer; False when it was lost meanwhile."""
    renewed = session.execute(
        update(Lease)
        .where(Lease.name == name, Lease.holder == holder, Lease.fence == fence)
        .values(expires_at=clock.now() + lasts)
    )
    return bool(renewed.rowcount)  # type: ignore[attr-defined]


def release_lease(session: Session, name: str, holder: str, fence: int) -> None:
    """Give a lease back before it ends. The row stays, so that its fence goes on growing."""
    session.execute(
        update(Lease)
        .where(Lease.name == name, Lease.holder == holder, Lease.fence == fence)
        .values(holder="", expires_at=clock.now())
    )


def read_lease(session: Session, name: str) -> Lease | None:
    """Return a lease as it stands."""
    return session.scalars(select(Lease).where(Lease.name == name)).first()


def is_held(lease: Lease | None) -> bool:
    """Tell whether somebody has the lease, as far as the clock can tell."""
    return lease is not None and bool(lease.holder) and lease.expires_at > clock.now()
