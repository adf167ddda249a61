"""A small project on the shared Spark server, for tests that run processes."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import yaml

from floe.catalog.tables import DatasetVersion
from floe.catalog.version_queries import list_versions
from floe.execution.planning import RunOptions
from floe.execution.runner import RunContext, RunResult, run_process
from floe.execution.spark.server import Server
from floe.execution.spark.session import SparkSessions
from floe.execution.versions.version_access import format_of, stored_version
from floe.execution.workspace import Workspace, load_site, open_workspace
from floe.settings import ProjectPaths

FLOE = Path(sys.executable).parent / "floe"
MONDAY, TUESDAY, WEDNESDAY = date(2026, 8, 31), date(2026, 9, 1), date(2026, 9, 2)

TRADES = {
    "format": "csv",
    "location": "landing/{business_date}/*.csv",
    "schema": [{"name": "id", "type": "bigint"}, {"name": "amount", "type": "double"}],
}
TOTALS: dict[str, Any] = {
    "schema": [{"name": "trades", "type": "bigint"}, {"name": "amount", "type": "double"}]
}
TOTAL_SQL = "select count(*) as trades, sum(amount) as amount from trades"


@dataclass
class Workshop:
    """A project's folder, with helpers for tests."""

    root: Path
    server: Server | None
    environ: dict[str, str] = field(default_factory=dict)

    def write(self, text: str, name: str = "floe.yaml") -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def declare(
        self, datasets: Mapping[str, Any], processes: Mapping[str, Any], **more: Any
    ) -> None:
        """Write floe.yaml, and a platform with a Spark server."""
        spec = {"name": "shop", "datasets": datasets, "processes": processes, **more}
        self.write(yaml.safe_dump(spec, sort_keys=False))
        self.write(yaml.safe_dump({"compute": {"default": self._compute()}}), "platform.yaml")

    def _compute(self) -> dict[str, Any]:
        """Return the compute profile: the shared server, else a small one of its own."""
        if self.server is None:
            return {"memory": "1g"}
        address, _, token = self.server.url.partition("/;token=")
        self.environ["SPARK_TOKEN"] = token
        # The server is shared, and the lake is not.
        lake = {"uri": f"jdbc:sqlite:{self.root}/lake.db", "warehouse": f"{self.root}/lake"}
        conf = {f"spark.sql.catalog.lake.{key}": value for key, value in lake.items()}
        return {"url": address, "token": "secret://env/SPARK_TOKEN", "conf": conf}

    def deliver(self, day: date, *rows: tuple[int, float]) -> None:
        """Write a day's trades to the landing folder."""
        lines = [f"{trade_id},{amount}" for trade_id, amount in rows]
        self.write("\n".join(["id,amount", *lines, ""]), f"landing/{day}/trades.csv")

    @contextmanager
    def open(self) -> Iterator["OpenShop"]:
        site = load_site(ProjectPaths(self.root), {**os.environ, **self.environ})
        with open_workspace(site) as workspace:
            yield OpenShop(workspace, SparkSessions(site))

    def floe(
        self, *arguments: str, fault: str | None = None, check: bool = True
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command as a user does; with a fault it is killed at that point."""
        environ = {**os.environ, **self.environ}
        if fault is not None:
            environ["FLOE_FAULT"] = fault
        done = subprocess.run(
            [str(FLOE), *arguments],
            cwd=self.root,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done


@dataclass(frozen=True)
class OpenShop:
    """An open project."""

    workspace: Workspace
    sparks: SparkSessions

    def run(self, process: str, day: date = TUESDAY, **wishes: Any) -> RunResult:
        how = RunContext(**wishes.pop("how", {}))
        return run_process(self.workspace, self.sparks, RunOptions(process, day, **wishes), how)

    def versions(self, dataset: str) -> list[DatasetVersion]:
        """Return all versions of a dataset, oldest first."""
        trade_id = self.workspace.dataset_id(dataset)
        with self.workspace.catalog.reading() as session:
            return list(reversed(list_versions(session, trade_id)))

    def states(self, dataset: str) -> dict[str, str]:
        return {version.version_tag: version.state for version in self.versions(dataset)}

    def rows(self, dataset: str, tag: str) -> list[tuple[Any, ...]]:
        """Return the sorted rows of a version."""
        (version,) = [version for version in self.versions(dataset) if version.version_tag == tag]
        stored = stored_version(self.workspace, dataset, version)
        with self.sparks.session() as spark:
            frame = format_of(self.workspace, dataset).read(self.workspace.site, spark, stored)
            return sorted(tuple(row) for row in frame.collect())

    def main(self, dataset: str) -> list[tuple[Any, ...]]:
        """Return the rows that the stable name of a lake table shows."""
        with self.sparks.session() as spark:
            table = f"{self.workspace.lake}.{dataset}"
            return sorted(tuple(row) for row in spark.table(table).collect())
