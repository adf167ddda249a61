"""What the Makefile, the tests and the benchmarks need around floe."""
