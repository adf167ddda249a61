"""Leases of this process: taken, kept alive by one thread, and given back."""

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
from floe.execution.holders import is_dead, new_holder

LASTS = timedelta(seconds=60)
BEAT_SECONDS = 15.0
LOOK_SECONDS = 0.2


class LeaseTakenError(FloeError):
    """Something is being done by another, and waiting is not wanted or took too long."""

    def __init__(self, name: str, holder: str) -> None:
        host, pid = [*holder.split("/"), "?", "?"][:2]
        super().__init__(
            f"'{name}' is in use by process {pid} on {host}. "
            "Wait until that has finished, and try again."
        )


class LeaseLostError(FloeError):
    """A lease ended while it was needed, because it could not be kept alive."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"The lease '{name}' was lost, because the catalog could not be reached for "
            f"{LASTS.seconds} s. Nothing was published. Run it again."
        )


@dataclass
class Held:
    """A lease that this process holds."""

    name: str
    holder: str
    fence: int
    lost: bool = False

    def check(self) -> None:
        """Raise if the lease was lost: another may have it by now."""
        if self.lost:
            raise LeaseLostError(self.name)


class LeaseKeeper:
    """Takes leases and keeps all of them alive until they are given back."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._held: dict[str, Held] = {}
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None

    @contextmanager
    def hold(self, name: str, *, wait: timedelta | None) -> Iterator[Held]:
        """Hold a lease for a while; wait for it at most so long, or not at all."""
        held = self._take(name, wait)
        try:
            yield held
        finally:
            self._give_back(held)

    def close(self) -> None:
        """Stop keeping."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join()

    def _take(self, name: str, wait: timedelta | None) -> Held:
        holder = new_holder()
        until = None if wait is None else clock.now() + wait
        while True:
            with self._catalog.writing() as session:
                fence = acquire_lease(session, name, holder, LASTS)
            if fence is not None:
                return self._keep(Held(name, holder, fence))
            other = self._free_if_dead(name)
            if other is None:
                continue
            if until is None or clock.now() >= until:
                raise LeaseTakenError(name, other)
            self._ending.wait(LOOK_SECONDS)

    def _free_if_dead(self, name: str) -> str | None:
        """Give back the lease of a holder that is gone; return a holder that is not."""
        with self._catalog.writing() as session:
            lease = read_lease(session, name)
            if lease is None or not lease.holder:
                return None
            if not is_dead(lease.holder):
                return lease.holder
            release_lease(session, name, lease.holder, lease.fence)
        return None

    def _keep(self, held: Held) -> Held:
        with self._lock:
            self._held[held.holder] = held
            if self._thread is None:
                self._thread = threading.Thread(target=self._beat, name="leases", daemon=True)
                self._thread.start()
        return held

    def _give_back(self, held: Held) -> None:
        with self._lock:
            self._held.pop(held.holder, None)
        with self._catalog.writing() as session:
            release_lease(session, held.name, held.holder, held.fence)

    def _beat(self) -> None:
        while not self._ending.wait(BEAT_SECONDS):
            with self._lock:
                held = list(self._held.values())
            for one in held:
                self._renew(one)

    def _renew(self, held: Held) -> None:
        try:
            with self._catalog.writing() as session:
                kept = renew_lease(session, held.name, held.holder, held.fence, LASTS)
        except OUTAGES:
            # The lease outlasts some beats: the catalog may be back before it ends.
            return
        held.lost = not kept
