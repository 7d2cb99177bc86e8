"""What a request is refused with."""


class RequestError(Exception):
    """A request is refused: the status code, a sentence for its sender, and after how many seconds it may come again."""

    def __init__(self, status: int, message: str, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.retry_after = retry_after
