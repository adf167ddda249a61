"""Parse dataset and process names into OpenLineage's namespace and name.

Pure: nothing is looked up in the catalog.
"""

from typing import NamedTuple

from floe.client.errors import BadNameError

LAKE = "lake"
"""Default namespace of datasets: `lake.name` of platform.yaml."""

# The widths of the catalog's columns.
LONGEST_NAMESPACE, LONGEST_NAME = 200, 300
# Namespaces that include a project: floe/<project>, dbt/<project>.
WITH_PROJECT = ("floe/", "dbt/")


class Name(NamedTuple):
    """The OpenLineage name of a dataset or job."""

    namespace: str
    name: str

    @property
    def full(self) -> str:
        return f"{self.namespace}/{self.name}"


def parse_dataset(text: str, namespace: str | None = None, lake: str = LAKE) -> Name:
    """Parse a dataset's name.

    If a namespace is given, the text is used as the name unchanged. Otherwise `credit.positions`
    is a dataset of the lake, while `DB2/CREDIT.POSITIONS` and URLs such as
    `s3://bucket/positions.csv` contain their namespace.
    """
    kind, example = "dataset", "schema.table or namespace/name"
    if namespace is not None:
        return _check(kind, text, Name(namespace, text), example)
    name = _split(text) if "/" in text else Name(lake, text)
    return _check(kind, text, name, example)


def parse_process(text: str, namespace: str | None = None) -> Name:
    """Parse a process key: `AUTOSYS/BOX/JOB` is job `BOX/JOB` in namespace `AUTOSYS`."""
    name = _split(text) if namespace is None else Name(namespace, text)
    return _check("process", text, name, "NAMESPACE/NAME, such as AUTOSYS/BOX/JOB")


def _split(text: str) -> Name:
    scheme, address, rest = text.partition("://")
    if address:
        host, _, name = rest.partition("/")
        return Name(f"{scheme}://{host}", name)
    slashes = 2 if text.startswith(WITH_PROJECT) else 1
    *namespace, name = text.split("/", slashes)
    return Name("/".join(namespace), name)


def _check(kind: str, text: str, name: Name, example: str) -> Name:
    if not name.name.strip():
        raise BadNameError(kind, text, "the name is empty", example)
    if not name.namespace.strip():
        raise BadNameError(kind, text, "the namespace is missing", example)
    if len(name.namespace) > LONGEST_NAMESPACE or len(name.name) > LONGEST_NAME:
        reason = (
            f"too long, at most {LONGEST_NAMESPACE} characters are allowed in a namespace "
            f"and {LONGEST_NAME} in a name"
        )
        raise BadNameError(kind, f"{text[:50]}…", reason, example)
    return name
