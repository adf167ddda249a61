"""Read what others deliver: whatever goes wrong becomes one reason, in one place.

A file or table of somebody else can be anything. Every read of one happens inside `foreign_read`,
so that a bad delivery ends as REJECTED (its content is wrong) or MISSING (it is not there, or
floe cannot get at it), and nothing else stops because of it. What is not the delivery's fault
(Spark or the catalog is away, the run was cancelled) passes through.
"""

import os
import pwd
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from traceback import format_exception

from floe.errors import FloeError
from floe.execution.cancelling import CancelledError
from floe.execution.failures import reason_of
from floe.execution.formats.contract import (
    Delivery,
    DeliveryIncompleteError,
    DeliveryRejectedError,
    VersionUnreadableError,
)
from floe.execution.formats.text import UnreadableTextError
from floe.execution.outages import CatalogAwayError
from floe.execution.site import Site
from floe.execution.spark.errors import SparkUnavailableError
from floe.execution.spark.faults import is_lost, is_passing
from floe.execution.spark.reasons import spark_reason
from floe.settings import make_private_folder

PASSED_ON = (CancelledError, CatalogAwayError, SparkUnavailableError)
# The machine lacks something; the same delivery may be read well later.
SHORTAGES = ("OutOfMemoryError", "No space left on device", "Too many open files")
LONGEST = 1_000
_ODD = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


@contextmanager
def foreign_read(site: Site, dataset: str, *, database: str | None = None) -> Iterator[None]:
    """Turn any failure to read a delivery into the reason why it is rejected or missing.

    `database` names the connection of a table. A database that does not answer as expected has
    delivered nothing, so its failures mean MISSING unless a value is wrong. A file is there, so
    they mean REJECTED.
    """
    try:
        yield
    except DeliveryRejectedError as error:
        raise DeliveryRejectedError(dataset, one_line(error.reason)) from error
    except DeliveryIncompleteError as error:
        raise DeliveryIncompleteError(dataset, one_line(error.reason)) from error
    except Exception as error:
        if _is_ours(error):
            raise
        raise _explained(site, dataset, error, database) from error


def refuse_problem(dataset: str, delivery: Delivery | None) -> None:
    """Raise if something is wrong with a delivery that shows without reading it."""
    if delivery is not None and delivery.problem:
        raise DeliveryRejectedError(dataset, delivery.problem)


def one_line(reason: str) -> str:
    """Return a reason that can be printed and stored: one line, no control characters."""
    text = _ODD.sub(_escaped, reason[: 2 * LONGEST])
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    if 0xDC80 <= code <= 0xDCFF:
        # A byte of a file name that is not UTF-8.
        return f"\\x{code - 0xDC00:02x}"
    return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(match[0], f"\\u{code:04x}")


def _is_ours(error: Exception) -> bool:
    if isinstance(error, PASSED_ON) or is_lost(error):
        return True
    if _module(error) == "sqlalchemy":
        # Users' databases raise DatabaseError; this is the catalog.
        return True
    condition = getattr(error, "getCondition", None)
    return callable(condition) and condition() == "OPERATION_CANCELED"


def _module(error: BaseException) -> str:
    return type(error).__module__.partition(".")[0]


def _explained(site: Site, dataset: str, error: Exception, database: str | None) -> FloeError:
    """Return the error that says in one sentence what happened, and what that means."""
    if isinstance(error, UnreadableTextError | VersionUnreadableError):
        return DeliveryRejectedError(dataset, one_line(error.reason))
    if isinstance(error, FloeError):
        return DeliveryIncompleteError(dataset, one_line(str(error)))
    if isinstance(error, OSError) and error.errno is not None:
        return DeliveryIncompleteError(dataset, one_line(_disk_reason(error)))
    _keep_details(site, dataset, error)
    if _module(error) == "pyspark":
        said = spark_reason(error)
        reason = said if database is None else f"the database '{database}' says: {said}"
        if _is_absent(error, database):
            return DeliveryIncompleteError(dataset, one_line(reason))
        return DeliveryRejectedError(dataset, one_line(reason))
    said = reason_of(error).splitlines()[0]
    return DeliveryRejectedError(dataset, one_line(f"it cannot be read: {said}"))


def _is_absent(error: Exception, database: str | None) -> bool:
    """Tell whether nothing could be read, as opposed to something wrong."""
    if is_passing(error) or any(word in str(error) for word in SHORTAGES):
        return True
    asked = getattr(error, "getSqlState", None)
    # Class 22 is about values: a text that is no number, a number that does not fit.
    wrong_value = callable(asked) and str(asked() or "").startswith("22")
    return database is not None and not wrong_value


def _disk_reason(error: OSError) -> str:
    name = _name(error)
    if isinstance(error, FileNotFoundError):
        return f"{name} was removed while it was looked at"
    said = (error.strerror or str(error)).lower()
    todo = ""
    if isinstance(error, PermissionError):
        todo = f"; give the user '{_user()}' permission to read it"
    return f"{name} cannot be read: {said}{todo}"


def _name(error: OSError) -> str:
    file = error.filename
    if not isinstance(file, str | bytes):
        return "a file"
    return os.path.basename(os.fsdecode(file).rstrip("/"))  # noqa: PTH119


def _user() -> str:
    number = os.geteuid()
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def details_path(site: Site, dataset: str) -> Path:
    """Return where the full error of the last unreadable delivery of a dataset is kept."""
    name = re.sub(r"[^\w.-]", "_", dataset)
    return site.state_dir / "logs" / "deliveries" / f"{name}.log"


def _keep_details(site: Site, dataset: str, error: Exception) -> None:
    path = details_path(site, dataset)
    make_private_folder(path.parent)
    text = "".join(format_exception(error))
    path.write_text(text, encoding="utf-8", errors="backslashreplace")


@contextmanager
def version_read(site: Site, dataset: str, tag: str) -> Iterator[None]:
    """Say in one sentence why a version that the catalog knows cannot be read."""
    try:
        with foreign_read(site, dataset):
            yield
    except (DeliveryRejectedError, DeliveryIncompleteError) as error:
        reason = f"{error.reason.rstrip('.')}."
        raise VersionUnreadableError(dataset, tag, reason) from error
