"""The life of a version: reserve, write, check, publish, repair, retract, read."""
