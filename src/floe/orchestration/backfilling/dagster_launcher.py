"""Launch batches in the Dagster of `floe up`, through its GraphQL API."""

import json
import time
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

from dagster import AssetKey, DagsterInstance, DagsterRunStatus

from floe.errors import FloeError
from floe.orchestration.backfilling.history import UNDER_WAY

SECONDS = 30.0
POLL_SECONDS = 0.5
REPOSITORY = "__repository__"

LAUNCH = """
mutation($params: ExecutionParams!) { launchRun(executionParams: $params) { __typename
  ... on LaunchRunSuccess { run { runId } }
  ... on Error { message }
  ... on RunConfigValidationInvalid { errors { message } } } }
"""
TERMINATE = """
mutation($run: String!) { terminateRun(runId: $run, terminatePolicy: SAFE_TERMINATE) { __typename
  ... on TerminateRunFailure { message }
  ... on Error { message } } }
"""


class NotLaunchedError(FloeError):
    """Dagster did not start a run."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"Dagster did not start the run: {reason}. Check its services with: floe status."
        )


class DagsterLauncher:
    """Runs batches in the Dagster of `floe up`; they continue without this process."""

    tags: Mapping[str, str] = {}

    def __init__(
        self, instance: DagsterInstance, url: str, secret: str, location: str, job: str
    ) -> None:
        self.where = url
        self._instance = instance
        self._url = url
        self._secret = secret
        self._location = location
        self._job = job

    def run(
        self,
        tags: Mapping[str, str],
        assets: list[AssetKey] | None,
        began: Callable[[str], None],
    ) -> DagsterRunStatus:
        """Launch the job and wait for its end; an interrupt terminates the run."""
        run_id = self._launch(tags, assets)
        began(run_id)
        return self.wait(run_id)

    def wait(self, run_id: str) -> DagsterRunStatus:
        """Wait for the end of a run; an interrupt terminates it."""
        try:
            return self._ended(run_id)
        except KeyboardInterrupt:
            self.terminate(run_id)
            self._ended(run_id)
            raise

    def terminate(self, run_id: str) -> None:
        """Ask Dagster to cancel a run; ended runs are left as they are."""
        self._request(TERMINATE, {"run": run_id})

    def _ended(self, run_id: str) -> DagsterRunStatus:
        while True:
            run = self._instance.get_run_by_id(run_id)
            if run is None:
                raise NotLaunchedError(f"the run {run_id} was deleted")
            if run.status not in UNDER_WAY:
                return run.status
            time.sleep(POLL_SECONDS)

    def _launch(self, tags: Mapping[str, str], assets: list[AssetKey] | None) -> str:
        selector: dict[str, Any] = {
            "repositoryLocationName": self._location,
            "repositoryName": REPOSITORY,
            "jobName": self._job,
        }
        if assets is not None:
            selector["assetSelection"] = [{"path": list(key.path)} for key in assets]
        named = [{"key": key, "value": value} for key, value in tags.items()]
        params = {
            "selector": selector,
            "runConfigData": {},
            "executionMetadata": {"tags": named},
        }
        answer = self._request(LAUNCH, {"params": params})["launchRun"]
        if "run" not in answer:
            errors = [error["message"] for error in answer.get("errors", [])]
            raise NotLaunchedError("; ".join(errors) or answer.get("message", answer["__typename"]))
        return str(answer["run"]["runId"])

    def _request(self, query: str, variables: Mapping[str, Any]) -> Any:
        body = json.dumps({"query": query, "variables": variables}).encode()
        headers = {
            "Content-Type": "application/json",
            "Authorization": f"Bearer {self._secret}",
        }
        request = urllib.request.Request(f"{self._url}/graphql", body, headers)  # noqa: S310
        try:
            with _opener.open(request, timeout=SECONDS) as answer:
                response = json.loads(answer.read())
        except (OSError, ValueError) as error:
            raise NotLaunchedError(f"{self._url} does not respond: {error}") from error
        if not response.get("data"):
            raise NotLaunchedError(str(response.get("errors")))
        return response["data"]


# Connections on this machine must not go through a company proxy.
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
