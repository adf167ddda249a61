"""Launch a job through Dagster's GraphQL API and follow its run."""

import json
import time
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console

from floe.errors import FloeError

SECONDS = 60.0
POLL_SECONDS = 0.5
LAUNCH = """
mutation($params: ExecutionParams!) { launchRun(executionParams: $params) { __typename
  ... on LaunchRunSuccess { run { runId } }
  ... on Error { message }
  ... on RunConfigValidationInvalid { errors { message } } } }
"""
LOG = """
query($run: ID!, $after: String) { logsForRun(runId: $run, afterCursor: $after) {
  ... on EventConnection { cursor hasMore events { __typename
    ... on MessageEvent { stepKey }
    ... on MaterializationEvent { assetKey { path } }
    ... on ExecutionStepFailureEvent { error { message causes { message } } } } } } }
"""
PLANNED, STARTED, MATERIALIZED, FAILED = (
    "AssetMaterializationPlannedEvent",
    "RunStartEvent",
    "MaterializationEvent",
    "ExecutionStepFailureEvent",
)
ENDS = ("RunSuccessEvent", "RunFailureEvent", "RunCanceledEvent")

# Connections on this machine must not go through a company proxy.
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class DagsterRefusedError(FloeError):
    """A request to Dagster failed."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"The request to Dagster at {url} failed: {reason}")


class Dagster:
    """The Dagster that `floe up` started."""

    def __init__(self, url: str, secret: str, location: str) -> None:
        self._url, self._secret, self._location = url, secret, location

    def launch(self, job: str, day: str) -> str:
        """Start a job for a day; return the id of its run."""
        params = {
            "selector": {
                "repositoryLocationName": self._location,
                "repositoryName": "__repository__",
                "jobName": job,
            },
            "runConfigData": {},
            "executionMetadata": {"tags": [{"key": "dagster/partition", "value": day}]},
        }
        answer = self._ask(LAUNCH, {"params": params})["launchRun"]
        if "run" not in answer:
            errors = [error["message"] for error in answer.get("errors", [])]
            reason = "; ".join(errors) or answer.get("message", answer["__typename"])
            raise DagsterRefusedError(self._url, reason)
        return str(answer["run"]["runId"])

    def follow(self, run_id: str, console: Console) -> list[str]:
        """Print each asset when it is done; return the failures."""
        planned, done, failures = 0, 0, []
        with console.status("waiting for Dagster to start the run") as status:
            for event in self._events(run_id):
                kind = event["__typename"]
                if kind == PLANNED:
                    planned += 1
                elif kind == STARTED:
                    console.print("  The run has started. Starting Spark takes some seconds.")
                elif kind == MATERIALIZED:
                    done += 1
                    name = ".".join(event["assetKey"]["path"])
                    console.print(f"  {done:2} of {planned}  {name}", markup=False)
                elif kind == FAILED:
                    failures.append(_reason(event))
                status.update(f"running, {done} of {planned} assets done")
                if kind in ENDS[1:] and not failures:
                    failures.append(f"The run ended with {kind}.")
        return failures

    def _events(self, run_id: str) -> Iterator[dict[str, Any]]:
        """Yield the events of a run until it ends."""
        after, over = None, False
        while not over:
            page = self._ask(LOG, {"run": run_id, "after": after})["logsForRun"]
            yield from page["events"]
            after = page["cursor"]
            over = any(event["__typename"] in ENDS for event in page["events"])
            if not over and not page["hasMore"]:
                time.sleep(POLL_SECONDS)

    def _ask(self, query: str, variables: Mapping[str, Any]) -> Any:
        body = json.dumps({"query": query, "variables": variables}).encode()
        headers = {
            "Content-Type": "application/json",
            "Authorization": f"Bearer {self._secret}",
        }
        request = urllib.request.Request(f"{self._url}/graphql", body, headers)
        try:
            with _opener.open(request, timeout=SECONDS) as response:
                answer = json.loads(response.read())
        except (OSError, ValueError) as error:
            raise DagsterRefusedError(self._url, str(error)) from error
        if not answer.get("data"):
            raise DagsterRefusedError(self._url, str(answer.get("errors")))
        return answer["data"]


def _reason(event: Mapping[str, Any]) -> str:
    """Return why a step failed: the message of the first cause."""
    error = event["error"] or {"message": "no reason given", "causes": []}
    first = [error, *error["causes"]][-1]
    return f"{event['stepKey']}: {first['message'].strip()}"
