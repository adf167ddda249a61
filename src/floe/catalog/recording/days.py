"""Room for the events of a day, made before the first of them is written."""

import logging
from collections.abc import Iterable
from datetime import date, timedelta

from sqlalchemy.exc import OperationalError

from floe.catalog.database import Catalog

log = logging.getLogger(__name__)
AHEAD = timedelta(days=7)
# Days further off are kept with the strays: a wrong clock must not fill the database with tables.
LONGEST_AGO, FURTHEST_OFF = timedelta(days=400), timedelta(days=31)


class EventDays:
    """The days that have room already, as far as is known here."""

    def __init__(self) -> None:
        self._ready: set[date] = set()

    def prepare(self, catalog: Catalog, days: Iterable[date], today: date) -> None:
        """Make room for these days; around today, for the week ahead as well."""
        for day in sorted(set(days) - self._ready):
            if today - LONGEST_AGO <= day <= today + FURTHEST_OFF:
                last = today + AHEAD if abs(day - today) <= timedelta(days=1) else day
                self._make_room(catalog, day, max(day, last))

    def _make_room(self, catalog: Catalog, first: date, last: date) -> None:
        try:
            with catalog.writing() as session:
                catalog.store.prepare_event_days(session, first, last)
        except OperationalError as error:
            # Someone reads the whole table just now. The events wait among the strays, and the
            # next one that finds the table free makes room for all of them.
            log.warning("No room was made for the events of %s yet: %s", first, error.orig)
            return
        self._ready |= {first + timedelta(days) for days in range((last - first).days + 1)}
