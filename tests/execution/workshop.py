"""A small project on the shared Spark server, written and run by a test."""

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
from floe.catalog.versions import list_versions
from floe.execution.planning import Wish
from floe.execution.runner import Circumstances, RunResult, run_process
from floe.execution.spark.server import Server
from floe.execution.sparks import Sparks
from floe.execution.versions.places import format_of, place_of
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
    """A project's folder, and what a test does in it."""

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
        """The server that is running; without one the project gets a small one of its own."""
        if self.server is None:
            return {"memory": "1g"}
        address, _, token = self.server.url.partition("/;token=")
        self.environ["SPARK_TOKEN"] = token
        # The server is shared, and the lake is not.
        lake = {"uri": f"jdbc:sqlite:{self.root}/lake.db", "warehouse": f"{self.root}/lake"}
        conf = {f"spark.sql.catalog.lake.{key}": value for key, value in lake.items()}
        return {"url": address, "token": "secret://env/SPARK_TOKEN", "conf": conf}

    def deliver(self, day: date, *rows: tuple[int, float]) -> None:
        """Put a day's trades where they are looked for."""
        lines = [f"{number},{amount}" for number, amount in rows]
        self.write("\n".join(["id,amount", *lines, ""]), f"landing/{day}/trades.csv")

    @contextmanager
    def open(self) -> Iterator["OpenShop"]:
        site = load_site(ProjectPaths(self.root), {**os.environ, **self.environ})
        with open_workspace(site) as workspace:
            yield OpenShop(workspace, Sparks(site))

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
    """A project that is open."""

    workspace: Workspace
    sparks: Sparks

    def run(self, process: str, day: date = TUESDAY, **wishes: Any) -> RunResult:
        how = Circumstances(**wishes.pop("how", {}))
        return run_process(self.workspace, self.sparks, Wish(process, day, **wishes), how)

    def versions(self, dataset: str) -> list[DatasetVersion]:
        """All versions of a dataset, the oldest first."""
        number = self.workspace.dataset_id(dataset)
        with self.workspace.catalog.reading() as session:
            return list(reversed(list_versions(session, number)))

    def states(self, dataset: str) -> dict[str, str]:
        return {one.version_tag: one.state for one in self.versions(dataset)}

    def rows(self, dataset: str, tag: str) -> list[tuple[Any, ...]]:
        """The rows of a version, in some order that is always the same."""
        (version,) = [one for one in self.versions(dataset) if one.version_tag == tag]
        place = place_of(self.workspace, dataset, version)
        with self.sparks.session() as spark:
            frame = format_of(self.workspace, dataset).read(self.workspace.site, spark, place)
            return sorted(tuple(row) for row in frame.collect())

    def main(self, dataset: str) -> list[tuple[Any, ...]]:
        """What the stable name of a lake table shows."""
        with self.sparks.session() as spark:
            table = f"{self.workspace.lake}.{dataset}"
            return sorted(tuple(row) for row in spark.table(table).collect())
