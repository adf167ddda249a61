"""Launch runs as forks of a warm process that has the project loaded already.

`warm_process.py` is that process, `run_launcher.py` the launcher that Dagster calls and the code
that executes a run, `workers.py` the records of run processes. Nothing is imported here, because
whoever stops runs does not need Dagster.
"""
