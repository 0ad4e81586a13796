"""Lets ``python -m kage`` do what the ``kage`` command does."""

from kage.cli.main import main

main()
