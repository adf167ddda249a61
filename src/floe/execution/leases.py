"""Acquire leases, renew them in one background thread, and release them."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from floe import clock
from floe.catalog import Catalog
from floe.catalog.database import OUTAGES
from floe.catalog.leases import acquire_lease, read_lease, release_lease, renew_lease
from floe.errors import FloeError
from floe.execution.os_processes import is_dead, new_holder

LEASE_DURATION = timedelta(seconds=60)
RENEW_SECONDS = 15.0
POLL_SECONDS = 0.2


class LeaseTakenError(FloeError):
    """Another process holds the lease, and waiting is not allowed or took too long."""

    def __init__(self, name: str, holder: str) -> None:
        host, pid = [*holder.split("/"), "?", "?"][:2]
        super().__init__(
            f"{_describe(name)} (process {pid} on {host}). Wait for it to finish, then try again."
        )


def _describe(lease: str) -> str:
    """Say what is in use, from the name of a lease: `table/…` of a dataset, `run/…` of a date."""
    kind, _, subject = lease.partition("/")
    if kind == "run":
        process, _, key = subject.rpartition("/")
        return f"'{process}' already runs for {key}"
    return f"'{subject}' is in use"


class LeaseLostError(FloeError):
    """A lease expired while in use, because it could not be renewed."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"The lease '{name}' was lost, because the catalog could not be reached for "
            f"{LEASE_DURATION.seconds} s. Nothing was published. Run it again."
        )


@dataclass
class HeldLease:
    """A lease that this process holds."""

    name: str
    holder: str
    fence: int
    lost: bool = False

    def check(self) -> None:
        """Raise if the lease was lost: another process may hold it by now."""
        if self.lost:
            raise LeaseLostError(self.name)


class LeaseKeeper:
    """Acquires leases, and renews them until they are released."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._held: dict[str, HeldLease] = {}
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None

    @contextmanager
    def hold(self, name: str, *, wait: timedelta | None) -> Iterator[HeldLease]:
        """Hold a lease for the block. Wait up to `wait` for it; None does not wait."""
        held = self._take(name, wait)
        try:
            yield held
        finally:
            self._release(held)

    def close(self) -> None:
        """Stop renewing leases."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join()

    def _take(self, name: str, wait: timedelta | None) -> HeldLease:
        holder = new_holder()
        until = None if wait is None else clock.now() + wait
        while True:
            with self._catalog.writing() as session:
                fence = acquire_lease(session, name, holder, LEASE_DURATION)
            if fence is not None:
                return self._register(HeldLease(name, holder, fence))
            other = self._release_if_dead(name)
            if other is None:
                continue
            if until is None or clock.now() >= until:
                raise LeaseTakenError(name, other)
            self._ending.wait(POLL_SECONDS)

    def _release_if_dead(self, name: str) -> str | None:
        """Release the lease if its holder is dead; otherwise return the holder."""
        with self._catalog.writing() as session:
            lease = read_lease(session, name)
            if lease is None or not lease.holder:
                return None
            if not is_dead(lease.holder):
                return lease.holder
            release_lease(session, name, lease.holder, lease.fence)
        return None

    def _register(self, held: HeldLease) -> HeldLease:
        with self._lock:
            self._held[held.holder] = held
            if self._thread is None:
                self._thread = threading.Thread(target=self._renew_all, name="leases", daemon=True)
                self._thread.start()
        return held

    def _release(self, held: HeldLease) -> None:
        with self._lock:
            self._held.pop(held.holder, None)
        with self._catalog.writing() as session:
            release_lease(session, held.name, held.holder, held.fence)

    def _renew_all(self) -> None:
        while not self._ending.wait(RENEW_SECONDS):
            with self._lock:
                held = list(self._held.values())
            for lease in held:
                self._renew(lease)

    def _renew(self, held: HeldLease) -> None:
        try:
            with self._catalog.writing() as session:
                kept = renew_lease(session, held.name, held.holder, held.fence, LEASE_DURATION)
        except OUTAGES:
            # The lease outlasts several renewals: the catalog may be back before it expires.
            return
        held.lost = not kept
