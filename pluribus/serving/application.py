"""The endpoints of a server."""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import python_multipart  # noqa: F401  # reads forms; without it the server must not begin
import swagger_ui_bundle
from fastapi import FastAPI, Request, Response
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.staticfiles import StaticFiles
from starlette.formparsers import MultiPartException, MultiPartParser

from ..core.files import format_json
from .batching import Batcher
from .bodies import BodyReader
from .descriptions import describe_model, describe_predict
from .errors import RequestError
from .metrics import ServerMetrics
from .model import ServedModel
from .rows import Rows, parse_json_rows, parse_pictures
from .schemas import build_schema
from .settings import ServerSettings

PAGE_ASSETS = "/docs/assets"
QUICK = 16 * 2**10
"""Bodies of JSON up to so many bytes are parsed at once; others, and pictures, in a thread, while other requests go on."""
QUICK_ROWS = 16
"""Answers to up to so many rows are written at once."""


class Application:
    """What the endpoints share: the model, the queue and the counters."""

    def __init__(self, model: ServedModel, settings: ServerSettings, report: Callable[[BaseException], None]) -> None:
        self.model, self.settings, self.report = model, settings, report
        self.metrics = ServerMetrics()
        self.schema = build_schema(model, settings.max_rows)
        self.bodies = BodyReader(settings.max_bytes)
        self.batcher = Batcher(
            model.answer, self.metrics, settings.max_batch, settings.max_wait_ms / 1000, settings.max_waiting
        )
        self.parsers = ThreadPoolExecutor(2, "pluribus-parser")

    @contextlib.asynccontextmanager
    async def run(self, _: FastAPI) -> AsyncIterator[None]:
        """Answer requests meanwhile; those that wait at the end are answered, too."""
        self.batcher.start()
        yield
        await self.batcher.stop()
        self.parsers.shutdown()

    async def predict(self, request: Request) -> Response:
        """Answer the rows of a request, or say why not."""
        began = time.perf_counter()
        headers = {}
        try:
            status, content = 200, await self._answer(request)
        except RequestError as error:
            status, content = error.status, {"detail": error.message}
            headers = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
            if status in (408, 413):
                headers["Connection"] = "close"  # the rest of the body is not read
        except Exception as error:  # nobody foresaw it: the log has it, and other requests go on
            self.report(error)
            status, content = 500, {"detail": f"an unexpected error ({type(error).__name__}): the log of the server has it"}
        text = await self._format(content)
        self.metrics.count_request(status, time.perf_counter() - began)
        return Response(text, status, headers, "application/json")

    async def _format(self, content: dict[str, Any]) -> str:
        """The content as JSON: that of many rows is written in a thread, while other requests go on."""
        if len(content.get("answers", ())) <= QUICK_ROWS:
            return format_json(content, indent=None)
        return await asyncio.get_running_loop().run_in_executor(self.parsers, format_json, content, None)

    async def _answer(self, request: Request) -> dict[str, Any]:
        if not self.batcher.is_running:
            raise RequestError(503, "the server does not answer", retry_after=1)
        if self.batcher.waiting_rows >= self.settings.max_waiting:
            raise RequestError(503, f"{self.batcher.waiting_rows:,} rows wait already: come again", retry_after=1)
        async with self.bodies.read(request) as body:
            rows, warned = await self._parse(request, body)
        answers = await self.batcher.answer_rows(rows)
        self.metrics.count_answers(answers)
        found: dict[str, Any] = {"answers": [{"row": row} | answer for row, answer in enumerate(answers)]}
        return found | ({"warnings": warned} if warned else {})

    async def _parse(self, request: Request, body: bytes) -> Rows:
        kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
        most, loop = self.settings.max_rows, asyncio.get_running_loop()
        if kind == "application/json" and len(body) <= QUICK:
            return parse_json_rows(self.model, self.schema, body, most)
        if kind == "application/json":
            return await loop.run_in_executor(self.parsers, parse_json_rows, self.model, self.schema, body, most)
        if kind.startswith("image/"):
            pictures = [("the picture", body)]
        elif kind == "multipart/form-data":
            pictures = await split_form(request, body, most)
        else:
            taken = "application/json, image/… or multipart/form-data" if self.model.takes_images else "application/json"
            raise RequestError(415, f"the content type must be {taken}, got {kind[:100] or 'none'}")
        return await loop.run_in_executor(self.parsers, parse_pictures, self.model, pictures, most)


async def split_form(request: Request, body: bytes, max_rows: int) -> list[tuple[str, bytes]]:
    """The names and contents of the files in a form. Raises RequestError if it is none, or has texts or too many files."""

    async def stream() -> AsyncGenerator[bytes, None]:
        yield body

    parser = MultiPartParser(request.headers, stream(), max_files=max_rows, max_fields=1)
    try:
        form = await parser.parse()
    except (MultiPartException, KeyError, ValueError) as error:
        reason = getattr(error, "message", "") or "it has no boundary"
        raise RequestError(413 if "Too many files" in reason else 400, f"the form cannot be read: {reason}") from None
    found = []
    async with contextlib.AsyncExitStack() as stack:
        for name, value in form.multi_items():
            if isinstance(value, str):
                raise RequestError(422, f"every field of the form must be a file, got a text for {name[:100]!r}")
            stack.push_async_callback(value.close)
            found.append((value.filename or name, await value.read()))
    return found


def build_application(
    model: ServedModel, settings: ServerSettings, report: Callable[[BaseException], None] = lambda error: None
) -> FastAPI:
    """The web application of a model. `report` is called with errors that nobody foresaw."""
    shared = Application(model, settings, report)
    app = FastAPI(title="pluribus serve", version="1", docs_url=None, redoc_url=None, lifespan=shared.run)
    app.openapi_version = "3.0.3"  # what the page shows

    @app.get("/", summary="What the model is: what it takes and answers, its classes and rules")
    async def describe() -> Response:
        return Response(format_json(describe_model(model, settings)), media_type="application/json")

    app.add_api_route(
        "/predict", shared.predict, methods=["POST"], response_class=Response, **describe_predict(model, shared.schema)
    )

    @app.get("/health/live", summary="Whether the process answers")
    @app.get("/health", include_in_schema=False)
    @app.get("/health/ready", summary="Whether rows would be answered now")
    async def check_health(request: Request) -> Response:
        is_ready = shared.batcher.is_running and shared.batcher.waiting_rows < settings.max_waiting
        status = 200 if is_ready or request.url.path == "/health/live" else 503
        return Response(format_json({"live": True, "ready": is_ready}, indent=None), status, media_type="application/json")

    @app.get("/metrics", summary="Counters for Prometheus")
    async def show_metrics() -> Response:
        return Response(shared.metrics.format(), media_type="text/plain; version=0.0.4; charset=utf-8")

    app.mount(PAGE_ASSETS, StaticFiles(directory=swagger_ui_bundle.swagger_ui_path))

    @app.get("/docs", include_in_schema=False)
    async def show_page() -> Response:
        return get_swagger_ui_html(
            title="pluribus serve",
            openapi_url="/openapi.json",
            swagger_js_url=f"{PAGE_ASSETS}/swagger-ui-bundle.js",
            swagger_css_url=f"{PAGE_ASSETS}/swagger-ui.css",
            swagger_favicon_url=f"{PAGE_ASSETS}/favicon-32x32.png",
        )

    return app
