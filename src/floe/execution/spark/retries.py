"""How long a client waits for Spark: seconds, not the ten minutes that pyspark would."""

from pyspark.sql.connect.client.retries import DefaultPolicy, RetryPolicyState


class _State(RetryPolicyState):
    """Gives up without the warning that pyspark adds: the error says it already."""

    def can_retry(self, exception: BaseException) -> bool:
        most = self.policy.max_retries
        return (most is None or self._attempt < most) and super().can_retry(exception)


class ShortPolicy(DefaultPolicy):
    """Fails about eight seconds after a server has gone."""

    def __init__(self) -> None:
        super().__init__(max_retries=5, initial_backoff=200, max_backoff=2000)

    def to_state(self) -> RetryPolicyState:
        return _State(self)
