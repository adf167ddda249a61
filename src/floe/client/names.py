"""From the names that people write to OpenLineage's pairs of namespace and name.

Pure. Nothing is looked up: the catalog knows the rest.
"""

from typing import NamedTuple

from floe.client.errors import BadNameError

LAKE = "lake"
"""The namespace of datasets that name none: `lake.name` of platform.yaml."""

# As wide as the catalog's columns.
LONGEST_NAMESPACE, LONGEST_NAME = 200, 300
# Namespaces that hold a project too: floe/<project>, dbt/<project>.
WITH_PROJECT = ("floe/", "dbt/")


class Name(NamedTuple):
    """A dataset or a job, as OpenLineage names it."""

    namespace: str
    name: str

    @property
    def full(self) -> str:
        return f"{self.namespace}/{self.name}"


def read_dataset(text: str, namespace: str | None = None, lake: str = LAKE) -> Name:
    """Read a dataset's name.

    With a namespace given, the text is the name as it stands. Without one `credit.positions` is
    a dataset of the lake, `DB2/CREDIT.POSITIONS` names its own namespace, and so does an address
    such as `s3://bucket/positions.csv`.
    """
    kind, example = "dataset", "schema.table or namespace/name"
    if namespace is not None:
        return _checked(kind, text, Name(namespace, text), example)
    found = _split(text) if "/" in text else Name(lake, text)
    return _checked(kind, text, found, example)


def read_process(text: str, namespace: str | None = None) -> Name:
    """Read a process key: `AUTOSYS/BOX/JOB` is the job `BOX/JOB` of the namespace `AUTOSYS`."""
    found = _split(text) if namespace is None else Name(namespace, text)
    return _checked("process", text, found, "NAMESPACE/NAME, such as AUTOSYS/BOX/JOB")


def _split(text: str) -> Name:
    scheme, address, rest = text.partition("://")
    if address:
        host, _, name = rest.partition("/")
        return Name(f"{scheme}://{host}", name)
    slashes = 2 if text.startswith(WITH_PROJECT) else 1
    *namespace, name = text.split("/", slashes)
    return Name("/".join(namespace), name)


def _checked(kind: str, text: str, found: Name, example: str) -> Name:
    if not found.name.strip():
        raise BadNameError(kind, text, "names nothing", example)
    if not found.namespace.strip():
        raise BadNameError(kind, text, "lacks a namespace", example)
    if len(found.namespace) > LONGEST_NAMESPACE or len(found.name) > LONGEST_NAME:
        reason = (
            f"is too long: a namespace has up to {LONGEST_NAMESPACE} characters, "
            f"a name up to {LONGEST_NAME}"
        )
        raise BadNameError(kind, f"{text[:50]}…", reason, example)
    return found
