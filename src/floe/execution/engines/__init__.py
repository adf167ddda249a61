"""Engines: how the work of a process becomes its outputs."""
