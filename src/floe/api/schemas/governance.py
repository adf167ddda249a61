"""Schemas of checks, registrations, drift claims, the audit log and sessions."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from floe.api.schemas import Prose, WholeName
from floe.catalog.drift import ClaimRow


class CheckItem(Struct):
    """A check on the versions of a dataset."""

    qdef_id: int
    name: str
    kind: str
    severity: str
    sql_expression: str | None
    expected_result: str | None
    parameters_json: Any


class CheckPage(Struct):
    """A page of active checks of a dataset, by name."""

    items: Sequence[CheckItem]
    next: str | None


class ResultItem(Struct):
    """The result of a check on a version."""

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
    """A page of check results, newest first."""

    items: Sequence[ResultItem]
    next: str | None


class RegistrationItem(Struct):
    """A request to register a dataset, and the decision."""

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
    """A page of registration requests, oldest first."""

    items: Sequence[RegistrationItem]
    next: str | None


class Decision(Struct, forbid_unknown_fields=True):
    """A steward's decision on a request."""

    comment: Prose | None = None


class ClaimPage(Struct):
    """A page of drift claims, oldest first."""

    items: Sequence[ClaimRow]
    next: str | None


class ClaimDecision(Struct):
    """The decision on a drift claim, and the name of the joined dataset, if any."""

    claim_id: int
    status: str
    dataset: str | None


class SplitRequest(Struct, forbid_unknown_fields=True):
    """The dataset to split off, by the full name that became an alias."""

    full_name: WholeName
    comment: Prose | None = None


class SplitDone(Struct):
    """The restored dataset, and the one it was joined to."""

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
    """A page of the audit log, newest first."""

    items: Sequence[AuditItem]
    next: str | None


class Caller(Struct):
    """The caller's name, roles, scopes and team."""

    name: str
    roles: Sequence[str]
    scopes: Sequence[str]
    team: str | None
    email: str | None
    expires_at: datetime | None


class Health(Struct):
    """The API is running."""

    status: str
    version: str


class Readiness(Struct):
    """The catalog responds and has the schema that this version needs."""

    status: str
    revision: str


class Stats(Struct):
    """Number of rows per noun."""

    counts: Mapping[str, int]


class SessionItem(Struct):
    """A browser session, or an unused login link."""

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
