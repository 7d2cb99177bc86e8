"""Networks written by others × every method: what works, and why a method refuses. docs/networks.md is made of it."""
