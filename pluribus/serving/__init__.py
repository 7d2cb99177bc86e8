"""A server for one exported file: its answers over HTTP, in the words of `pluribus predict`."""

from .settings import ServerSettings

__all__ = ["ServerSettings"]
