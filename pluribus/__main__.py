"""`python -m pluribus` is `pluribus`."""

from .cli import main

main()
