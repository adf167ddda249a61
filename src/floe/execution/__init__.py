"""Run processes and store their versions. The only package that uses Spark."""
