"""`pluribus serve`."""

from pathlib import Path
from typing import Annotated

import typer

from ..core.terminal import create_console
from ..serving.settings import ServerSettings
from .app import app
from .error_log import describe_unexpected, write_log

MISSING = (
    "the server needs the packages fastapi, uvicorn, prometheus-client, python-multipart and swagger-ui-bundle: "
    "pip install 'pluribus[serve]'"
)
DEFAULT = ServerSettings()


@app.command(
    epilog="[bold]Examples[/]\n\npluribus serve model.onnx\n\npluribus serve model.onnx --port 9000 --max-batch 32 --threads 4"
    "\n\npluribus serve model.pt2 --trust"
)
def serve(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="an .onnx or .pt2 file that `pluribus export` wrote", show_default=False)
    ],
    host: Annotated[str, typer.Option(help="the address to listen on; others open it to the network")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="the port to listen on; 0 takes a free one")] = 8000,
    max_batch: Annotated[int, typer.Option(min=1, help="rows of one run of the model")] = DEFAULT.max_batch,
    max_wait_ms: Annotated[
        float, typer.Option(min=0, max=10_000, help="how long a row may wait for others to share a run with")
    ] = DEFAULT.max_wait_ms,
    max_rows: Annotated[int, typer.Option(min=1, help="rows of one request")] = DEFAULT.max_rows,
    max_bytes: Annotated[int, typer.Option(min=1, help="bytes of one request")] = DEFAULT.max_bytes,
    max_waiting: Annotated[int, typer.Option(min=1, help="rows that may wait; more get 503")] = DEFAULT.max_waiting,
    threads: Annotated[
        int | None, typer.Option(min=1, help="threads of the processor that compute [all]", show_default=False)
    ] = None,
    trust: Annotated[
        bool, typer.Option("--trust", help="read a .pt2 file, which can hold code that then runs", show_default=False)
    ] = False,
) -> None:
    """Serve an exported file over HTTP: POST /predict answers rows of JSON, or pictures, in the words of `pluribus predict`.

    Requests that arrive together share one run of the model. GET / says what the model is; /docs is a page to try it, /health
    says whether it answers, /metrics counts for Prometheus. It has no passwords and no encryption: put a proxy before it.
    """
    from ..runs.config import ConfigError

    try:
        settings = ServerSettings(max_batch, max_wait_ms, max_rows, max_bytes, max_waiting, threads)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    try:
        from ..serving.server import run_server
    except ModuleNotFoundError as error:
        raise ImportError(MISSING) from error
    console, errors = create_console(), create_console(stderr=True)

    def report(error: BaseException) -> None:
        errors.print(f"pluribus: an unexpected error, {describe_unexpected(error)}; the log is {write_log(error)}")

    def announce(address: str) -> None:
        console.print(f"{file.name}: {address}, with a page to try it at {address}/docs")

    run_server(file, host, port, settings, trust, announce, report)
    console.print("stopped")
