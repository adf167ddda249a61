"""Turn checks into SQL, and results into verdicts. Pure: the caller runs the SQL.

`plan_audit` builds the statement that measures a version, `judge` turns its result into verdicts,
and `sample_query` selects rows that failed.
"""

from floe.quality.audit_plan import Audit, Contract, Planned, plan_audit
from floe.quality.check_sql import CheckSqlError, UnusableCheckError
from floe.quality.judge import CONTRACT, Status, Verdict, judge
from floe.quality.samples import sample_query
from floe.quality.violations import ColumnLike

__all__ = [
    "CONTRACT",
    "Audit",
    "CheckSqlError",
    "ColumnLike",
    "Contract",
    "Planned",
    "Status",
    "UnusableCheckError",
    "Verdict",
    "judge",
    "plan_audit",
    "sample_query",
]
