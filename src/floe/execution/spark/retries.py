"""How long a client waits for Spark: seconds, not the ten minutes that pyspark would."""

from collections.abc import Callable

from pyspark.sql.connect.client.retries import DefaultPolicy, RetryPolicyState


class _State(RetryPolicyState):
    """Gives up without the warning that pyspark adds: the error says it already."""

    def can_retry(self, exception: BaseException) -> bool:
        most = self.policy.max_retries
        return (most is None or self._attempt < most) and super().can_retry(exception)

    def next_attempt(self, exception: BaseException | None = None) -> int | None:
        """Wait for a server that may come back; for one that is dead there is no waiting."""
        milliseconds: int | None = super().next_attempt(exception)
        gone = isinstance(self.policy, ShortPolicy) and self.policy.is_gone()
        return 0 if milliseconds and gone else milliseconds


class ShortPolicy(DefaultPolicy):
    """Fails about eight seconds after a server has gone, at once if its process is seen to be."""

    def __init__(self, is_gone: Callable[[], bool] = lambda: False) -> None:
        super().__init__(max_retries=5, initial_backoff=200, max_backoff=2000)
        self.is_gone = is_gone

    def to_state(self) -> RetryPolicyState:
        return _State(self)
