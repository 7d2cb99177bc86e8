"""Networks as other people write them, small, with rows and targets. None of them was written for an ensemble."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from . import graphs, hugging_face, images, sequences

ROWS = 4


@dataclass(frozen=True)
class Network:
    """A network, a batch that it takes, targets for the batch, and how it is converted."""

    about: str
    build: Callable[[], nn.Module]
    draw_batch: Callable[[int], Any]
    draw_targets: Callable[[int], Tensor]
    options: dict[str, Any]
    """Keyword arguments of `pluribus.ensemble`."""


def labels(*shape: int, classes: int = 3) -> Callable[[int], Tensor]:
    return lambda rows: torch.randint(0, classes, (rows, *shape))


def draw(*shape: int) -> Callable[[int], Tensor]:
    return lambda rows: torch.randn(rows, *shape)


def draw_tokens(rows: int) -> Tensor:
    return torch.randint(1, 23, (rows, 6))


HF_TEXT, HF_PIXELS = hugging_face.draw_text, hugging_face.draw_pixels
LOGITS: dict[str, Any] = {"output": "logits"}
WORDS: dict[str, Any] = LOGITS | {"class_axis": -1}
LAST: dict[str, Any] = {"class_axis": -1}
NETWORKS = {
    "BERT": Network("transformers, text", hugging_face.build_bert, HF_TEXT, labels(), LOGITS),
    "BERT, masked": Network(
        "transformers, tokens, tied weights",
        lambda: hugging_face.build_bert("BertForMaskedLM"),
        HF_TEXT,
        labels(6, classes=23),
        WORDS,
    ),
    "DistilBERT": Network("transformers, text", hugging_face.build_distilbert, HF_TEXT, labels(), LOGITS),
    "GPT-2": Network(
        "transformers, language model, tied weights", hugging_face.build_gpt2, HF_TEXT, labels(6, classes=23), WORDS
    ),
    "GPT-2, text": Network(
        "transformers, text",
        lambda: hugging_face.build_gpt2("GPT2ForSequenceClassification"),
        HF_TEXT,
        labels(),
        LOGITS,
    ),
    "Llama": Network("transformers, language model", hugging_face.build_llama, HF_TEXT, labels(6, classes=23), WORDS),
    "ViT": Network("transformers, images", hugging_face.build_vit, HF_PIXELS, labels(), LOGITS),
    "ConvNeXt": Network(
        "transformers, images", hugging_face.build_convnext, lambda rows: HF_PIXELS(rows, 16), labels(), LOGITS
    ),
    "MobileNetV2": Network(
        "transformers, images", hugging_face.build_mobilenet, lambda rows: HF_PIXELS(rows, 32), labels(), LOGITS
    ),
    "encoder": Network("torch's encoder, text", sequences.EncoderClassifier, draw_tokens, labels(), {}),
    "translator": Network(
        "torch's encoder and decoder, two inputs",
        sequences.Translator,
        lambda rows: (draw_tokens(rows), torch.randint(0, 19, (rows, 5))),
        labels(5, classes=19),
        LAST,
    ),
    "attention": Network("nn.MultiheadAttention, sets", sequences.AttentionPooling, draw(7, 5), labels(), {}),
    "LSTM": Network("nn.LSTM, text", sequences.LSTMClassifier, draw_tokens, labels(), {}),
    "GRU": Network(
        "nn.GRU, series", sequences.GRUForecast, draw(7, 2), lambda rows: torch.randn(rows, 1), {"task": "regression"}
    ),
    "LSTM, words": Network(
        "nn.LSTM, language model, time first, tied weights",
        sequences.LSTMLanguageModel,
        draw_tokens,
        labels(6, classes=23),
        LAST,
    ),
    "CTC": Network("convolutions over frames", sequences.SpeechCTC, draw(4, 16), labels(8, classes=5), LAST),
    "MobileNetV3": Network("blocks, a Linear subclass", images.MobileNetV3, draw(3, 16, 16), labels(), {}),
    "ResNet, heads": Network("several answers", images.ResNetWithHeads, draw(3, 8, 8), labels(), LOGITS),
    "U-Net": Network("pixels", images.UNet, draw(3, 8, 8), labels(8, 8), {}),
    "two inputs": Network(
        "image and table", images.ImageAndTable, lambda rows: (torch.randn(rows, 3, 8, 8), torch.randn(rows, 5)), labels(), {}
    ),
    "graphs": Network("graphs in a batch", graphs.GraphClassifier, graphs.draw_graphs, labels(), {}),
    "one graph": Network("nodes of one graph", graphs.NodeClassifier, graphs.draw_graph, labels(), {"batch_axis": None}),
}
NEEDED = {name: "transformers" for name, network in NETWORKS.items() if network.about.startswith("transformers")}
"""From which library a network comes."""
