"""Runs begin in a process that has the project loaded already: a copy of it, made in a moment.

`zygote.py` is that process, `warm.py` the launcher that Dagster calls, `workers.py` what is on
record of the processes of runs. Nothing is imported here: whoever stops runs needs no Dagster.
"""
