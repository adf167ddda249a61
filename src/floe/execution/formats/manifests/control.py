"""A control file: lines of a name and its value, beside the data."""

from floe.execution.formats.manifests.promise import Promise, PromiseError
from floe.spec.datasets import ControlManifest


def parse_control(content: bytes, manifest: ControlManifest) -> Promise:
    """Read a control file."""
    values = _values(content.decode("utf-8-sig", errors="replace"), manifest.delimiter)
    rows = _wanted(values, manifest.rows)
    checksum = _wanted(values, manifest.checksum_name)
    if rows is not None and not rows.isdigit():
        raise PromiseError(f"'{rows}' is not a number of rows")
    return Promise(
        rows=None if rows is None else int(rows),
        checksum=checksum,
        algorithm=None if checksum is None else manifest.checksum or "sha256",
    )


def render_control(manifest: ControlManifest, rows: int, checksum: str | None) -> bytes:
    """Write a control file."""
    lines = [(manifest.rows, str(rows)), (manifest.checksum_name, checksum)]
    written = [f"{name}{manifest.delimiter}{value}\n" for name, value in lines if name and value]
    return "".join(written).encode()


def _values(text: str, delimiter: str) -> dict[str, str]:
    # A blank as delimiter is any blanks: such files are lined up in columns.
    pairs = (line.partition(delimiter) for line in text.splitlines() if delimiter in line)
    return {name.strip(): value.strip() for name, _, value in pairs}


def _wanted(values: dict[str, str], name: str | None) -> str | None:
    if name is None:
        return None
    if name not in values:
        raise PromiseError(f"it has no line for '{name}'")
    return values[name]
