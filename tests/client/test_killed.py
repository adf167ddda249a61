"""A job that is killed while it reports loses no report and duplicates none."""

import os
import subprocess
import sys

import pytest

from floe.client import Client
from tests.client.fake_api import FakeApi

# Each test starts child processes.
pytestmark = pytest.mark.slow

# Reports three datasets, and kills itself before the given step. Every call that opens, writes,
# syncs, renames, removes, locks or sends counts as a step.
JOB = """
import os, signal, sys
import hashlib, http.client, json, logging, urllib.parse
from floe.client import Client

STEPS = {"open", "os.rename", "os.remove", "os.mkdir", "os.truncate", "os.utime",
         "fcntl.flock", "http.client.connect", "http.client.send"}
left = int(sys.argv[1])

def step(name):
    global left
    if name in STEPS or name in ("write", "fsync"):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

def stepping(name, work):
    def stepped(descriptor, *rest):
        if descriptor > 2:
            step(name)
        return work(descriptor, *rest)
    return stepped

client = Client(warn=lambda _: None)
os.write, os.fsync = stepping("write", os.write), stepping("fsync", os.fsync)
sys.addaudithook(lambda name, _: step(name))
for index in range(3):
    client.register_dataset(f"night.t{index}", "1", occurred_at="2026-09-01T06:00:00Z")
    os.write(1, b"%d" % index)
"""
MOST_STEPS = 300
# All steps in the long form (make soak), every fifth otherwise.
STRIDE = 1 if "FLOE_SOAK_ROUNDS" in os.environ else 5


def run_until(step: int) -> tuple[bool, list[str]]:
    """Run the job up to a step; return whether it was killed, and its finished reports."""
    done = subprocess.run(
        [sys.executable, "-c", JOB, str(step)], stdout=subprocess.PIPE, text=True, check=False
    )
    assert done.returncode in (0, -9)
    return done.returncode == -9, [f"night.t{index}" for index in done.stdout]


@pytest.mark.soak
@pytest.mark.parametrize("api_is_up", [True, False])
def test_a_job_killed_at_any_step(
    api_is_up: bool, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed, step = True, 1
    while killed:
        monkeypatch.setenv("FLOE_SPOOL", f"spool_{step}")
        api.taken.clear()
        api._hashes.clear()
        api.gate = (lambda: None) if api_is_up else (lambda: (503, {}))
        killed, finished = run_until(step)
        api.gate = lambda: None
        Client().deliver()
        delivered = [event["outputs"][0]["name"] for event in api.taken]
        assert delivered == sorted(set(delivered)), f"killed at step {step}"
        assert set(finished) <= set(delivered), f"killed at step {step}"
        assert Client().spool.count_waiting() == 0
        step += STRIDE
        assert step < MOST_STEPS
    assert finished == delivered == ["night.t0", "night.t1", "night.t2"]
    assert step > 20
