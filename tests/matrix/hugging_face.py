"""Networks of transformers, built from small configurations: nothing is downloaded."""

from typing import Any

import torch
from torch import Tensor, nn

WIDTH, HEADS, VOCABULARY, LENGTH = 16, 2, 23, 6


def build_bert(kind: str = "BertForSequenceClassification") -> nn.Module:
    import transformers

    config = transformers.BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=WIDTH,
        num_hidden_layers=2,
        num_attention_heads=HEADS,
        intermediate_size=32,
        max_position_embeddings=16,
        num_labels=3,
    )
    return getattr(transformers, kind)(config)


def build_distilbert() -> nn.Module:
    import transformers

    config = transformers.DistilBertConfig(
        vocab_size=VOCABULARY, dim=WIDTH, n_layers=2, n_heads=HEADS, hidden_dim=32, max_position_embeddings=16, num_labels=3
    )
    return transformers.DistilBertForSequenceClassification(config)


def build_gpt2(kind: str = "GPT2LMHeadModel") -> nn.Module:
    import transformers

    config = transformers.GPT2Config(
        vocab_size=VOCABULARY,
        n_embd=WIDTH,
        n_layer=2,
        n_head=HEADS,
        n_positions=16,
        num_labels=3,
        bos_token_id=0,
        eos_token_id=0,
        pad_token_id=0,
        use_cache=False,
    )
    return getattr(transformers, kind)(config)


def build_llama() -> nn.Module:
    import transformers

    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=WIDTH,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=HEADS,
        max_position_embeddings=16,
        bos_token_id=0,
        eos_token_id=0,
        pad_token_id=0,
        use_cache=False,
    )
    return transformers.LlamaForCausalLM(config)


def build_vit() -> nn.Module:
    import transformers

    config = transformers.ViTConfig(
        hidden_size=WIDTH,
        num_hidden_layers=2,
        num_attention_heads=HEADS,
        intermediate_size=32,
        image_size=8,
        patch_size=4,
        num_channels=3,
        num_labels=3,
    )
    return transformers.ViTForImageClassification(config)


def build_convnext() -> nn.Module:
    import transformers

    config = transformers.ConvNextConfig(
        num_channels=3, patch_size=2, hidden_sizes=[8, 12, 16, 20], depths=[1, 1, 1, 1], image_size=16, num_labels=3
    )
    return transformers.ConvNextForImageClassification(config)


def build_mobilenet() -> nn.Module:
    import transformers

    config = transformers.MobileNetV2Config(
        num_channels=3, image_size=32, depth_multiplier=0.2, depth_divisible_by=4, min_depth=4, num_labels=3
    )
    return transformers.MobileNetV2ForImageClassification(config)


def draw_text(rows: int) -> dict[str, Tensor]:
    return {
        "input_ids": torch.randint(1, VOCABULARY, (rows, LENGTH)),
        "attention_mask": torch.ones(rows, LENGTH, dtype=torch.long),
    }


def draw_pixels(rows: int, size: int = 8) -> dict[str, Any]:
    return {"pixel_values": torch.randn(rows, 3, size, size)}
