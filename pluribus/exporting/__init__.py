"""Files that answer without pluribus: ONNX, and programs of torch."""

from .api import Exported, export
from .formats import ExportError
from .loading import LoadedFile, load_file

__all__ = ["ExportError", "Exported", "LoadedFile", "export", "load_file"]
