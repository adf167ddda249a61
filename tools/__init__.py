"""Tools for the Makefile, the tests and the benchmarks."""
