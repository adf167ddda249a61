"""Spark for whoever asks: the server is started with the first question, not before."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from floe.execution.site import Site
from floe.execution.spark.session import close_session, end_session, open_session

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

Say = Callable[[str], None]


class Sparks:
    """Hands out sessions, one for each run. A server that died is started again."""

    def __init__(self, site: Site) -> None:
        self._site = site

    @contextmanager
    def session(
        self, *, conf: Mapping[str, str] | None = None, profile: str | None = None
    ) -> Iterator["SparkSession"]:
        """Open a session for a while."""
        opened = open_session(self._site, conf=conf, profile=profile)
        try:
            yield opened
        finally:
            close_session(opened)

    def end(self, number: str, *, profile: str | None = None) -> None:
        """End a session whose client is gone, and all that runs in it."""
        end_session(self._site, number, profile=profile)
