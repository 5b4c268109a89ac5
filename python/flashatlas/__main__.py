"""``python -m flashatlas``: the command line."""

from flashatlas.cli import main

main()
