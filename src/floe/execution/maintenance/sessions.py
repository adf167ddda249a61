"""A Spark session that is opened when it is first needed: much upkeep finds nothing to do."""

from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Self

from floe.execution.sparks import Sparks

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession


class LateSession:
    """Opens a session with the first question for it, and closes it at the end."""

    def __init__(self, sparks: Sparks) -> None:
        self._sparks, self._stack = sparks, ExitStack()
        self._session: SparkSession | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    @property
    def spark(self) -> "SparkSession":
        if self._session is None:
            self._session = self._stack.enter_context(self._sparks.session())
        return self._session
