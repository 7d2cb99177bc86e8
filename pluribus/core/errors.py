"""What can go wrong, by name. Every message says what must hold, what came, and what to do."""


class PluribusError(Exception):
    """The root of the errors that are about networks, methods and files; a wrong argument is a ValueError or TypeError."""


class ConversionError(PluribusError, ValueError):
    """The network cannot be converted as asked."""


class Unsupported(PluribusError):
    """The method has no such form; the message gives the reason."""


class FileError(PluribusError, ValueError):
    """A file is not what it should be."""


class NonFiniteWeights(FileError):
    """A file holds weights that are NaN or infinite: its network has diverged."""


class DataError(FileError):
    """A data set is missing, damaged, or not what it says it is."""
