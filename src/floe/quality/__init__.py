"""Check kinds → measures, measures → verdicts. Pure: whoever speaks Spark runs the SQL.

`plan_audit` makes the one statement that measures a version, `judge` says what its result means,
`sample_query` shows rows that failed.
"""

from floe.quality.audit import Audit, Contract, Planned, plan_audit
from floe.quality.columns import ColumnLike
from floe.quality.errors import UnusableCheckError, WrongPartError
from floe.quality.judge import judge
from floe.quality.samples import sample_query
from floe.quality.verdicts import CONTRACT, Status, Verdict

__all__ = [
    "CONTRACT",
    "Audit",
    "ColumnLike",
    "Contract",
    "Planned",
    "Status",
    "UnusableCheckError",
    "Verdict",
    "WrongPartError",
    "judge",
    "plan_audit",
    "sample_query",
]
