"""Let the Dagster that `floe up` keeps running run a batch, by its GraphQL."""

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
    """Dagster did not take a run."""

    def __init__(self, said: str) -> None:
        super().__init__(
            f"Dagster did not start the run: {said}. See whether all is well with: floe status."
        )


class ByDagster:
    """Lets the Dagster of `floe up` run batches; they go on without this process."""

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
        """Launch the job and wait for its end; being interrupted terminates the run."""
        run_id = self._launch(tags, assets)
        began(run_id)
        return self.wait(run_id)

    def wait(self, run_id: str) -> DagsterRunStatus:
        """Wait for the end of a run; being interrupted terminates it."""
        try:
            return self._ended(run_id)
        except KeyboardInterrupt:
            self.terminate(run_id)
            self._ended(run_id)
            raise

    def terminate(self, run_id: str) -> None:
        """Ask Dagster to cancel a run; one that has ended is none to cancel."""
        self._ask(TERMINATE, {"run": run_id})

    def _ended(self, run_id: str) -> DagsterRunStatus:
        while True:
            run = self._instance.get_run_by_id(run_id)
            if run is None:
                raise NotLaunchedError(f"the run {run_id} is gone")
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
        answer = self._ask(LAUNCH, {"params": params})["launchRun"]
        if "run" not in answer:
            wrong = [one["message"] for one in answer.get("errors", [])]
            raise NotLaunchedError("; ".join(wrong) or answer.get("message", answer["__typename"]))
        return str(answer["run"]["runId"])

    def _ask(self, query: str, variables: Mapping[str, Any]) -> Any:
        body = json.dumps({"query": query, "variables": variables}).encode()
        headers = {
            "Content-Type": "application/json",
            "Authorization": f"Bearer {self._secret}",
        }
        request = urllib.request.Request(f"{self._url}/graphql", body, headers)  # noqa: S310
        try:
            with _opener.open(request, timeout=SECONDS) as answer:
                found = json.loads(answer.read())
        except (OSError, ValueError) as error:
            raise NotLaunchedError(f"{self._url} does not answer: {error}") from error
        if not found.get("data"):
            raise NotLaunchedError(str(found.get("errors")))
        return found["data"]


# A proxy of the company has no business between processes of one machine.
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
