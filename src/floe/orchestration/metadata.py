"""The names under which runs of assets leave what floe knows of them in Dagster's event log.

Whoever makes a version writes these into the materialisation; the observer reads them there.
What Dagster has a name for itself keeps that name: `dagster/row_count`, `dagster/column_schema`,
`dagster/column_lineage`.
"""

VERSION = "floe/version"
"""The tag of the version that was made."""
SIZE = "floe/bytes"
"""How many bytes the version takes."""
SNAPSHOT = "floe/snapshot"
"""The snapshot of the lake table that the version is."""
READS = "floe/reads"
"""What was read, as a list of {"dataset": …, "version": …}."""
SQL = "floe/sql"
"""The SQL that made it, as it was run."""
RUN = "floe/run"
"""The run as the catalog knows it. Where it stands, the run has reported itself already."""
CHECKED = "floe/checked"
"""Whether the version was audited before it was published."""
