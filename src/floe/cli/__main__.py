"""`python -m floe.cli`: the command line, if floe is not on the PATH."""

from floe.cli import main

main()
