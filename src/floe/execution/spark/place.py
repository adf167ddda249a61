"""Where the server of a project has its files."""

from dataclasses import dataclass
from pathlib import Path

from floe.execution.site import Site
from floe.spec.platform import Compute


@dataclass(frozen=True)
class ServerPlace:
    """A project and one of its compute profiles: there is one server for each.

    The files of the project's own profile have short names, those of others have its name.
    """

    site: Site
    profile: str | None = None

    @property
    def compute(self) -> Compute:
        return self.site.compute(self.profile)

    @property
    def folder(self) -> Path:
        own = self.site.state_dir / "spark"
        return own if self._is_own else own / f"{self.profile}"

    @property
    def log(self) -> Path:
        name = "spark.log" if self._is_own else f"spark-{self.profile}.log"
        return self.site.state_dir / "logs" / name

    @property
    def output(self) -> Path:
        """What the JVM says past its log, such as why it ended."""
        return self.log.with_suffix(".out")

    @property
    def work(self) -> Path:
        """What Spark needs only while it runs. A JVM that was killed leaves it behind."""
        return self.folder / "work"

    @property
    def state(self) -> Path:
        return self.folder / "server.json"

    @property
    def pid(self) -> Path:
        """The JVM's number, written by the shell that starts it: there only during a start."""
        return self.folder / "server.pid"

    @property
    def lock(self) -> Path:
        return self.folder / "lock"

    @property
    def properties(self) -> Path:
        """The settings, secrets among them: there only while a JVM starts."""
        return self.folder / "server.properties"

    @property
    def _is_own(self) -> bool:
        return self.profile in (None, self.site.spec.compute)
