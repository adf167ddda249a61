"""Whose fault a database error is: the data's, the database's, or not known.

Only data errors may be answered as the sender's fault. Senders throw away what they are told is
wrong, so an error that is not on the list of data errors must stay retriable.
"""

from enum import Enum


class Fault(Enum):
    """What an error of the database's driver is due to."""

    DATA = "data"
    """The values do not fit: the same rows fail again on a healthy database."""
    DATABASE = "database"
    """The database does not work now: every write fails until it is repaired."""
    UNKNOWN = "unknown"
    """Neither is certain: it may be one row or all of them."""


# Data exception, integrity constraint violation, program limit exceeded (row or index too large).
DATA_CLASSES = ("22", "23", "54")
# Connection, transaction state (read-only after a failover), authorization, unknown database or
# schema, resources, locks, operator intervention, system errors, damaged data.
DATABASE_CLASSES = ("08", "25", "28", "3D", "3F", "53", "55", "57", "58", "XX")
# Tables and columns that are missing, and rights that were taken away.
DATABASE_STATES = frozenset({"42P01", "42703", "42501", "42704"})


def fault_of_sqlstate(state: str) -> Fault:
    """Classify an SQLSTATE."""
    if state.startswith(DATA_CLASSES):
        return Fault.DATA
    if state in DATABASE_STATES or state.startswith(DATABASE_CLASSES):
        return Fault.DATABASE
    return Fault.UNKNOWN
