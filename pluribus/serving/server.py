"""`pluribus serve`: a model behind a socket, until the process is told to stop."""

import signal
import socket
from collections.abc import Callable
from pathlib import Path

import uvicorn

from ..core.errors import PluribusError
from .application import build_application
from .model import open_model
from .settings import SHUTDOWN_SECONDS, ServerSettings


class ServerError(PluribusError):
    """The server cannot begin."""


def run_server(
    file: Path,
    host: str = "127.0.0.1",
    port: int = 8000,
    settings: ServerSettings | None = None,
    trust: bool = False,
    announce: Callable[[str], None] = print,
    report: Callable[[BaseException], None] = lambda error: None,
) -> None:
    """Answer requests until SIGTERM or SIGINT, and then those that are under way.

    Args: the exported file; where to listen (port 0 takes a free one); the limits; whether a .pt2 file is trusted. `announce`
    is called with the address once it is listened to, and `report` with errors that nobody foresaw. Raises: FileError if the
    file cannot be served, ServerError if the address cannot be listened to.
    """
    settings = settings or ServerSettings()
    model = open_model(file, trust, settings.threads)
    application = build_application(model, settings, report)
    with open_socket(host, port) as listener:
        address, number = listener.getsockname()[:2]
        announce(f"http://{f'[{address}]' if ':' in address else address}:{number}")
        config = uvicorn.Config(
            application, log_level="warning", access_log=False, timeout_graceful_shutdown=SHUTDOWN_SECONDS, server_header=False
        )
        # uvicorn sends itself the signal again after it has stopped: the command then ends as one that did what it was asked.
        before = signal.signal(signal.SIGTERM, lambda *_: None)
        try:
            uvicorn.Server(config).run(sockets=[listener])
        finally:
            signal.signal(signal.SIGTERM, before)


def open_socket(host: str, port: int) -> socket.socket:
    """A socket that listens. Raises ServerError if the address is taken, or is none of this machine."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(1024)
        except OSError:
            listener.close()
            raise
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ServerError(f"cannot listen on {host}, port {port}: {reason}; choose another with --host and --port") from error
    return listener
