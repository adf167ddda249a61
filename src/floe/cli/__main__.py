"""`python -m floe.cli`: the command line, for those who know only where their Python is."""

from floe.cli import main

main()
