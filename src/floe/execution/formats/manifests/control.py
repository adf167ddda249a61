"""A control file: lines of a name and its value, beside the data."""

from floe.execution.formats.manifests.promise import Promise, PromiseError, whole_number
from floe.spec.datasets import ControlManifest


def parse_control(content: bytes, manifest: ControlManifest) -> Promise:
    """Read a control file."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PromiseError(f"it is not UTF-8: {error.reason} at byte {error.start}") from None
    values = _values(text, manifest.delimiter)
    rows = _wanted(values, manifest.rows)
    checksum = _wanted(values, manifest.checksum_name)
    return Promise(
        rows=None if rows is None else whole_number(rows, "rows"),
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
    values: dict[str, str] = {}
    for name, _, value in pairs:
        if values.setdefault(name.strip(), value.strip()) != value.strip():
            raise PromiseError(f"it has two values for '{name.strip()}'")
    return values


def _wanted(values: dict[str, str], name: str | None) -> str | None:
    if not name:
        return None
    if name not in values:
        raise PromiseError(f"it has no line for '{name}'")
    return values[name]
