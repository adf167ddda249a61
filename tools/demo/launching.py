"""Dagster's web interface, asked to run a job, and asked how it goes."""

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
PLANNED, BEGAN, MADE, BROKE = (
    "AssetMaterializationPlannedEvent",
    "RunStartEvent",
    "MaterializationEvent",
    "ExecutionStepFailureEvent",
)
ENDS = ("RunSuccessEvent", "RunFailureEvent", "RunCanceledEvent")

# A proxy of the company has no business between processes of one machine.
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class DagsterRefusedError(FloeError):
    """Dagster gave no good answer."""

    def __init__(self, url: str, said: str) -> None:
        super().__init__(f"Dagster at {url} did not do as it was asked: {said}")


class Dagster:
    """The Dagster that `floe up` has brought up."""

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
            wrong = [one["message"] for one in answer.get("errors", [])]
            said = "; ".join(wrong) or answer.get("message", answer["__typename"])
            raise DagsterRefusedError(self._url, said)
        return str(answer["run"]["runId"])

    def follow(self, run_id: str, console: Console) -> list[str]:
        """Say what is made while it is; return what has failed, empty when all went well."""
        planned, made, failures = 0, 0, []
        with console.status("waiting for Dagster to start the run") as status:
            for event in self._events(run_id):
                kind = event["__typename"]
                if kind == PLANNED:
                    planned += 1
                elif kind == BEGAN:
                    console.print("  Dagster has started it. Spark takes longest the first time.")
                elif kind == MADE:
                    made += 1
                    name = ".".join(event["assetKey"]["path"])
                    console.print(f"  {made:2} of {planned}  {name}", markup=False)
                elif kind == BROKE:
                    failures.append(_reason(event))
                status.update(f"running, {made} of {planned} assets are made")
                if kind in ENDS[1:] and not failures:
                    failures.append(f"Dagster ended the run: {kind}.")
        return failures

    def _events(self, run_id: str) -> Iterator[dict[str, Any]]:
        """Yield what happens in a run, up to its end."""
        after, over = None, False
        while not over:
            found = self._ask(LOG, {"run": run_id, "after": after})["logsForRun"]
            yield from found["events"]
            after = found["cursor"]
            over = any(one["__typename"] in ENDS for one in found["events"])
            if not over and not found["hasMore"]:
                time.sleep(POLL_SECONDS)

    def _ask(self, query: str, variables: Mapping[str, Any]) -> Any:
        body = json.dumps({"query": query, "variables": variables}).encode()
        headers = {
            "Content-Type": "application/json",
            "Authorization": f"Bearer {self._secret}",
        }
        request = urllib.request.Request(f"{self._url}/graphql", body, headers)
        try:
            with _opener.open(request, timeout=SECONDS) as answer:
                found = json.loads(answer.read())
        except (OSError, ValueError) as error:
            raise DagsterRefusedError(self._url, str(error)) from error
        if not found.get("data"):
            raise DagsterRefusedError(self._url, str(found.get("errors")))
        return found["data"]


def _reason(event: Mapping[str, Any]) -> str:
    """Return what a step failed of: the words of the first cause."""
    error = event["error"] or {"message": "no reason was given", "causes": []}
    first = [error, *error["causes"]][-1]
    return f"{event['stepKey']}: {first['message'].strip()}"
