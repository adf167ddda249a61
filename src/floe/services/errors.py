"""Why a project cannot be brought up. Each says what to do."""

from floe.errors import FloeError


class PortWantedError(FloeError):
    """A port that the user asked for is taken."""

    def __init__(self, port: int, what: str, option: str) -> None:
        super().__init__(
            f"Port {port}, asked for {what}, is taken by another program. "
            f"Free it, or name another with {option}; {option} 0 takes any that is free."
        )


class UnknownServiceError(FloeError):
    """A service was named that a project does not have."""

    def __init__(self, name: str, known: list[str]) -> None:
        super().__init__(f"There is no service '{name}' here. Choose from: {', '.join(known)}.")


class DagsterMissingError(FloeError):
    """Dagster is needed and not installed."""

    def __init__(self) -> None:
        super().__init__(
            "The project has assets or processes for Dagster, which is not installed. "
            "Run: pip install 'floe[dagster]', or leave it out with --only api,spark."
        )


class NotStoppedError(FloeError):
    """What was told to stop is still there."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(f"Still running: {', '.join(names)}. Look into .floe/logs, and end them.")
