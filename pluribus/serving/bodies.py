"""Bodies of requests, read within limits: what is too large is refused while it arrives, and not after."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from starlette.requests import ClientDisconnect

from .errors import RequestError
from .settings import BODY_SECONDS, HELD_BODIES


class BodyReader:
    """Reads bodies of at most `max_bytes` each, and holds few of the largest at once."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes, self.held = max_bytes, 0

    @contextlib.asynccontextmanager
    async def read(self, request: Any) -> AsyncIterator[bytes]:
        """The body of a Starlette request; it counts as held until the context ends.

        Raises: RequestError if it is too large (413) or too slow (408), if too much is held already (503), or if its sender has
        gone (400), who will not read that.
        """
        said = request.headers.get("content-length", "")
        if said.isdigit() and int(said) > self.max_bytes:
            raise self._refuse_size(f"{int(said):,}")
        body = bytearray()
        try:
            await self._fill(body, request)
            yield bytes(body)
        finally:
            self.held -= len(body)

    async def _fill(self, body: bytearray, request: Any) -> None:
        try:
            async with asyncio.timeout(BODY_SECONDS):
                async for chunk in request.stream():
                    if len(body) + len(chunk) > self.max_bytes:
                        raise self._refuse_size("more")
                    if self.held + len(chunk) > HELD_BODIES * self.max_bytes:
                        raise RequestError(503, "too many large requests are under way: come again", retry_after=1)
                    body += chunk
                    self.held += len(chunk)
        except TimeoutError:
            raise RequestError(408, f"the body must arrive within {BODY_SECONDS:g} seconds") from None
        except ClientDisconnect:
            raise RequestError(400, "the sender has gone") from None

    def _refuse_size(self, got: str) -> RequestError:
        return RequestError(413, f"a body must have at most {self.max_bytes:,} bytes, got {got}: send fewer rows at once")
