"""Turn every failure to read a delivery into a one-line reason.

Delivered files and tables can contain anything, so they are only read inside `foreign_read`. A bad
delivery becomes REJECTED (its content is wrong) or MISSING (it is absent or inaccessible) and stops
nothing else. Errors that the delivery did not cause (Spark or the catalog is down, the run was
cancelled) pass through.
"""

import os
import pwd
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from traceback import format_exception

from floe.errors import FloeError
from floe.execution.cancellation import CancelledError
from floe.execution.failures import CatalogOutageError, reason_of
from floe.execution.formats.contract import (
    Delivery,
    DeliveryIncompleteError,
    DeliveryRejectedError,
    VersionUnreadableError,
)
from floe.execution.formats.text_files import UnreadableTextError
from floe.execution.site import Site
from floe.execution.spark.errors import SparkUnavailableError, is_lost, is_transient, spark_reason
from floe.settings import make_private_folder

PASSED_ON = (CancelledError, CatalogOutageError, SparkUnavailableError)
# The machine lacks a resource; reading the same delivery may succeed later.
SHORTAGES = ("OutOfMemoryError", "No space left on device", "Too many open files")
LONGEST = 1_000
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


@contextmanager
def foreign_read(site: Site, dataset: str, *, database: str | None = None) -> Iterator[None]:
    """Turn any failure to read a delivery into a rejected or incomplete delivery.

    `database` names the connection of a table. Failures of a database mean MISSING unless a value
    is invalid, because nothing was delivered. A file exists, so its failures mean REJECTED.
    """
    try:
        yield
    except DeliveryRejectedError as error:
        raise DeliveryRejectedError(dataset, one_line(error.reason)) from error
    except DeliveryIncompleteError as error:
        raise DeliveryIncompleteError(dataset, one_line(error.reason)) from error
    except Exception as error:
        if _passes_through(error):
            raise
        raise _to_delivery_error(site, dataset, error, database) from error


def reject_problem(dataset: str, delivery: Delivery | None) -> None:
    """Raise if a delivery has a problem that is known without reading it."""
    if delivery is not None and delivery.problem:
        raise DeliveryRejectedError(dataset, delivery.problem)


def one_line(reason: str) -> str:
    """Return a reason as one printable line: escapes control characters, cuts length."""
    text = _UNPRINTABLE.sub(_escaped, reason[: 2 * LONGEST])
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    if 0xDC80 <= code <= 0xDCFF:
        # A byte of a file name that is not UTF-8.
        return f"\\x{code - 0xDC00:02x}"
    return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(match[0], f"\\u{code:04x}")


def _passes_through(error: Exception) -> bool:
    if isinstance(error, PASSED_ON) or is_lost(error):
        return True
    if _module(error) == "sqlalchemy":
        # Users' databases raise DatabaseError, so this comes from the catalog.
        return True
    condition = getattr(error, "getCondition", None)
    return callable(condition) and condition() == "OPERATION_CANCELED"


def _module(error: BaseException) -> str:
    return type(error).__module__.partition(".")[0]


def _to_delivery_error(
    site: Site, dataset: str, error: Exception, database: str | None
) -> FloeError:
    """Return the error to report, with a one-line reason."""
    if isinstance(error, UnreadableTextError | VersionUnreadableError):
        return DeliveryRejectedError(dataset, one_line(error.reason))
    if isinstance(error, FloeError):
        return DeliveryIncompleteError(dataset, one_line(str(error)))
    if isinstance(error, OSError) and error.errno is not None:
        return DeliveryIncompleteError(dataset, one_line(_disk_reason(error)))
    _keep_details(site, dataset, error)
    if _module(error) == "pyspark":
        message = spark_reason(error)
        reason = message if database is None else f"the database '{database}' says: {message}"
        if _is_missing(error, database):
            return DeliveryIncompleteError(dataset, one_line(reason))
        return DeliveryRejectedError(dataset, one_line(reason))
    message = reason_of(error).splitlines()[0]
    return DeliveryRejectedError(dataset, one_line(f"it cannot be read: {message}"))


def _is_missing(error: Exception, database: str | None) -> bool:
    """Tell whether the data was unavailable, rather than invalid."""
    if is_transient(error) or any(word in str(error) for word in SHORTAGES):
        return True
    get_state = getattr(error, "getSqlState", None)
    # SQLSTATE class 22 means invalid values: not a number, or out of range.
    wrong_value = callable(get_state) and str(get_state() or "").startswith("22")
    return database is not None and not wrong_value


def _disk_reason(error: OSError) -> str:
    name = _name(error)
    if isinstance(error, FileNotFoundError):
        return f"{name} was removed while it was being read"
    message = (error.strerror or str(error)).lower()
    hint = ""
    if isinstance(error, PermissionError):
        hint = f"; give the user '{_user()}' permission to read it"
    return f"{name} cannot be read: {message}{hint}"


def _name(error: OSError) -> str:
    file = error.filename
    if not isinstance(file, str | bytes):
        return "a file"
    return os.path.basename(os.fsdecode(file).rstrip("/"))  # noqa: PTH119


def _user() -> str:
    user_id = os.geteuid()
    try:
        return pwd.getpwuid(user_id).pw_name
    except KeyError:
        return str(user_id)


def details_path(site: Site, dataset: str) -> Path:
    """Return the log file with the full error of a dataset's last bad delivery."""
    name = re.sub(r"[^\w.-]", "_", dataset)
    return site.state_dir / "logs" / "deliveries" / f"{name}.log"


def _keep_details(site: Site, dataset: str, error: Exception) -> None:
    path = details_path(site, dataset)
    make_private_folder(path.parent)
    text = "".join(format_exception(error))
    path.write_text(text, encoding="utf-8", errors="backslashreplace")


@contextmanager
def version_read(site: Site, dataset: str, tag: str) -> Iterator[None]:
    """Turn any failure to read a known version into a VersionUnreadableError."""
    try:
        with foreign_read(site, dataset):
            yield
    except (DeliveryRejectedError, DeliveryIncompleteError) as error:
        reason = f"{error.reason.rstrip('.')}."
        raise VersionUnreadableError(dataset, tag, reason) from error
