"""Checks, registrations, the audit log and the caller itself, as the API shows them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from floe.api.schemas.fields import Prose, WholeName
from floe.catalog.drift_claims import ClaimRow


class CheckItem(Struct):
    """A rule on the versions of a dataset."""

    qdef_id: int
    name: str
    kind: str
    severity: str
    sql_expression: str | None
    expected_result: str | None
    parameters_json: Any


class CheckPage(Struct):
    """A page of the checks of a dataset that are in force, by name."""

    items: Sequence[CheckItem]
    next: str | None


class ResultItem(Struct):
    """The verdict of a check on a version."""

    qres_id: int
    qdef_id: int
    name: str
    severity: str
    dataset_version_id: int | None
    run_id: int | None
    executed_at: datetime
    status: str
    failed_rows: int | None
    detail_json: Any


class ResultPage(Struct):
    """A page of verdicts, the newest first."""

    items: Sequence[ResultItem]
    next: str | None


class RegistrationItem(Struct):
    """A request to register a dataset, and what was decided."""

    reg_id: int
    dataset_id: int
    submitted_by: str
    submitted_at: datetime
    status: str
    reviewer: str | None
    reviewed_at: datetime | None
    review_comment: str | None
    request_json: Any
    full_name: str = ""


class RegistrationPage(Struct):
    """A page of requests, the oldest first."""

    items: Sequence[RegistrationItem]
    next: str | None


class Decision(Struct, forbid_unknown_fields=True):
    """What the steward says about a request."""

    comment: Prose | None = None


class ClaimPage(Struct):
    """A page of drift claims, the oldest first."""

    items: Sequence[ClaimRow]
    next: str | None


class ClaimDecision(Struct):
    """What was decided about a drift claim; of two datasets that are one now, its name."""

    claim_id: int
    status: str
    dataset: str | None


class SplitRequest(Struct, forbid_unknown_fields=True):
    """Which dataset is to be split off again, by the full name that became an alias."""

    full_name: WholeName
    comment: Prose | None = None


class SplitDone(Struct):
    """The dataset that is there again, and the one it was joined to."""

    dataset_id: int
    full_name: str
    kept_id: int
    kept_name: str


class AuditItem(Struct):
    """Who changed what, with the values before and after."""

    audit_id: int
    occurred_at: datetime
    actor: str
    action: str
    object_type: str
    object_key: str
    before_json: Any
    after_json: Any
    reason: str | None


class AuditPage(Struct):
    """A page of the audit log, the newest first."""

    items: Sequence[AuditItem]
    next: str | None


class Caller(Struct):
    """Who is asking, as the API knows it."""

    name: str
    roles: Sequence[str]
    scopes: Sequence[str]
    team: str | None
    email: str | None
    expires_at: datetime | None


class Health(Struct):
    """The API answers."""

    status: str
    version: str


class Readiness(Struct):
    """The catalog answers and has the tables that this floe needs."""

    status: str
    revision: str


class Stats(Struct):
    """How many there are of each noun."""

    counts: Mapping[str, int]


class SessionItem(Struct):
    """A session of a person in a browser, or a login link that nobody has opened yet."""

    session_id: int
    name: str
    token_id: int | None
    browser: str | None
    created_at: datetime
    opened_at: datetime | None
    expires_at: datetime
    last_used_at: datetime | None
    revoked_at: datetime | None


class SessionPage(Struct):
    """All sessions, newest first."""

    items: Sequence[SessionItem]
