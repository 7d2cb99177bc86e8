"""Sequence networks, as they are written with torch's own layers."""

import math

import torch
from torch import Tensor, nn


class LSTMClassifier(nn.Module):
    """Embedded tokens through two layers of an LSTM; the last hidden state is classified."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(23, 8)
        self.lstm = nn.LSTM(8, 12, num_layers=2, batch_first=True, bidirectional=True, dropout=0.1)
        self.dropout = nn.Dropout(0.1)
        self.classifier = nn.Linear(24, 3)

    def forward(self, tokens: Tensor) -> Tensor:
        _, (hidden, _) = self.lstm(self.embedding(tokens))
        return self.classifier(self.dropout(torch.cat([hidden[-2], hidden[-1]], dim=-1)))


class GRUForecast(nn.Module):
    """The next value of a series, from the last state of a GRU."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(2, 12, batch_first=True)
        self.head = nn.Linear(12, 1)

    def forward(self, series: Tensor) -> Tensor:
        states, _ = self.gru(series)
        return self.head(states[:, -1])


class LSTMLanguageModel(nn.Module):
    """A language model with time first, whose last layer is tied to its embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Embedding(23, 12)
        self.rnn = nn.LSTM(12, 12)
        self.decoder = nn.Linear(12, 23)
        self.decoder.weight = self.encoder.weight

    def forward(self, tokens: Tensor) -> Tensor:
        output, _ = self.rnn(self.encoder(tokens.t()))
        return self.decoder(output).transpose(0, 1)


class PositionalEncoding(nn.Module):
    def __init__(self, width: int, length: int = 16) -> None:
        super().__init__()
        position = torch.arange(length).unsqueeze(1)
        rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
        table = torch.zeros(1, length, width)
        table[0, :, 0::2], table[0, :, 1::2] = torch.sin(position * rates), torch.cos(position * rates)
        self.dropout = nn.Dropout(0.1)
        self.register_buffer("table", table)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(x + self.table[:, : x.shape[1]])


class EncoderClassifier(nn.Module):
    """torch's encoder over tokens, of which zeros are padding."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(23, 16, padding_idx=0)
        self.positions = PositionalEncoding(16)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 2)
        self.classifier = nn.Linear(16, 3)

    def forward(self, tokens: Tensor) -> Tensor:
        padding = tokens == 0
        h = self.encoder(self.positions(self.embedding(tokens)), src_key_padding_mask=padding)
        return self.classifier(h.masked_fill(padding.unsqueeze(-1), 0).mean(1))


class Translator(nn.Module):
    """torch's encoder and decoder: two inputs, tokens of two languages; classes of every token on the last axis."""

    def __init__(self) -> None:
        super().__init__()
        self.source, self.target = nn.Embedding(23, 16), nn.Embedding(19, 16)
        self.transformer = nn.Transformer(16, 2, 1, 1, 32, batch_first=True)
        self.generator = nn.Linear(16, 19)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1], device=target.device)
        return self.generator(self.transformer(self.source(source), self.target(target), tgt_mask=mask))


class AttentionPooling(nn.Module):
    """A set of vectors, read by one learnt query."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(5, 16)
        self.query = nn.Parameter(torch.randn(1, 1, 16))
        self.attention = nn.MultiheadAttention(16, 4, batch_first=True)
        self.norm = nn.LayerNorm(16)
        self.head = nn.Sequential(nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 3))

    def forward(self, x: Tensor) -> Tensor:
        h = self.embed(x)
        pooled, _ = self.attention(self.query.expand(x.size(0), -1, -1), h, h)
        return self.head(self.norm(pooled.squeeze(1)))


class SpeechCTC(nn.Module):
    """Frames to log-probabilities of characters, as nn.CTCLoss takes them but for the order of axes: `[B, T, C]`."""

    def __init__(self) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(
            *(nn.Conv1d(4, 12, 3, stride=2, padding=1), nn.BatchNorm1d(12), nn.ReLU(), nn.Dropout(0.1)),
            *(nn.Conv1d(12, 12, 3, padding=1, groups=3), nn.BatchNorm1d(12), nn.ReLU()),
        )
        self.classifier = nn.Linear(12, 5)

    def forward(self, frames: Tensor) -> Tensor:
        return self.classifier(self.convolutions(frames).transpose(1, 2)).log_softmax(-1)
