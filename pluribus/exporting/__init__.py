"""Files that answer without pluribus: ONNX, and programs of torch."""

from .api import Exported, export
from .formats import ExportError

__all__ = ["ExportError", "Exported", "export"]
