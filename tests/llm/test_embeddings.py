"""Vectors of texts have length 1, do not depend on what else is embedded, and need no network by default."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_httpserver import HTTPServer

from mesa_llm.errors import BadReply, ConfigError
from mesa_llm.llm import embeddings
from mesa_llm.llm.embeddings import CachedEmbedder, Encode, embedder

TEXTS = ["The council should fix the roads.", "Potholes in our streets need repair.", "I like tea."]


def test_close_contents_have_close_vectors() -> None:
    roads, potholes, tea = embedder().embed(TEXTS)
    assert roads @ potholes > 0.2 > roads @ tea


def test_vectors_have_length_one_and_empty_texts_none() -> None:
    vectors = embedder().embed([*TEXTS, ""])
    assert (vectors.shape, vectors.dtype) == ((4, 256), np.float32)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 1, 0], abs=1e-6)


@cache
def wordllama() -> Encode:
    return embeddings._wordllama()


@given(texts=st.lists(st.text(), max_size=6), others=st.lists(st.text(), max_size=6))
def test_a_vector_does_not_depend_on_the_texts_around_it(texts: list[str], others: list[str]) -> None:
    forgetful = CachedEmbedder(wordllama, max_kept=1)
    mixed = forgetful.embed([*others, *texts])[len(others) :]
    assert [row.tobytes() for row in embedder().embed(texts)] == [row.tobytes() for row in mixed]


def test_no_texts_give_no_rows() -> None:
    assert len(embedder().embed([])) == 0


def test_a_text_that_utf8_cannot_hold_and_a_very_long_one_are_read() -> None:
    assert np.isfinite(embedder().embed(["\ud800", "word " * 100_000])).all()


def test_one_embedder_serves_the_whole_process() -> None:
    assert embedder("wordllama") is embedder()


class Counting:
    """A model of two dimensions that keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def load(self) -> Counting:
        return self

    def __call__(self, texts: list[str]) -> list[list[float]]:
        self.asked += texts
        return [[float(len(text)), 1.0] for text in texts]


def test_each_text_is_encoded_once() -> None:
    model = Counting()
    remembering = CachedEmbedder(model.load)
    remembering.embed(["a", "b", "a"])
    remembering.embed(["b", "c"])
    assert model.asked == ["a", "b", "c"]


def test_the_least_recently_used_is_forgotten_first() -> None:
    model = Counting()
    remembering = CachedEmbedder(model.load, max_kept=2)
    for text in ["a", "b", "a", "c", "a", "b"]:
        remembering.embed([text])
    assert model.asked == ["a", "b", "c", "b"]


@pytest.mark.parametrize("vectors", [[[1.0, 2.0]], [[1.0, float("nan")]] * 2, [1.0, 2.0]])
def test_what_are_no_vectors_is_said(vectors: Any) -> None:
    with pytest.raises(BadReply, match="2 texts gave no 2 vectors"):
        CachedEmbedder(lambda: lambda _: vectors).embed(["a", "b"])


@pytest.mark.parametrize("name", ["word2vec", "litellm:", "wordllama:big", ""])
def test_an_unknown_name_is_said_with_the_known_ones(name: str) -> None:
    with pytest.raises(ConfigError, match=r"use 'wordllama', 'minilm', 'twhin-bert', 'litellm:MODEL'"):
        embedder(name)


def test_a_missing_package_is_said_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(ConfigError, match="pip install sentence-transformers"):
        embedder("sentence-transformers:all-MiniLM-L6-v2")


@pytest.fixture
def own_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Give the name of a model in a package that has the interface of sentence-transformers."""
    (tmp_path / "sentence_transformers.py").write_text(
        "class SentenceTransformer:\n"
        "    def __init__(self, name): self.name = name\n"
        "    def encode(self, texts, convert_to_numpy, show_progress_bar):\n"
        "        return [[len(self.name), 0.0] for _ in texts]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield "sentence-transformers:own"
    sys.modules.pop("sentence_transformers", None)


def test_sentence_transformers_models_are_named_after_a_colon(own_model: str) -> None:
    assert embedder(own_model).embed(["a"]).tolist() == [[1.0, 0.0]]


def test_litellm_models_are_named_after_a_colon(httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"index": 1, "embedding": [0.0, 2.0]}, {"index": 0, "embedding": [3.0, 0.0]}]
    answer = {"object": "list", "model": "tiny", "data": rows, "usage": {"prompt_tokens": 2, "total_tokens": 2}}
    httpserver.expect_request("/v1/embeddings", method="POST").respond_with_json(answer)
    monkeypatch.setenv("OPENAI_API_BASE", httpserver.url_for("/v1"))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    assert embedder("litellm:openai/tiny").embed(["a", "b"]).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_an_endpoint_that_refuses_is_said(httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch) -> None:
    httpserver.expect_request("/v1/embeddings").respond_with_json({"error": {"message": "no such model"}}, status=404)
    monkeypatch.setenv("OPENAI_API_BASE", httpserver.url_for("/v1"))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with pytest.raises(ConfigError, match="no such model"):
        embedder("litellm:openai/missing").embed(["a"])


ALONE = """
import logging, sys
def refuse(event, arguments):
    if event in {"socket.connect", "socket.getaddrinfo"}:
        raise RuntimeError(event)
sys.addaudithook(refuse)
from mesa_llm.llm.embeddings import embedder
assert "tokenizers" not in sys.modules
assert embedder().embed(["tea"]).shape == (1, 256)
assert "wordllama" not in sys.modules
assert (logging.root.handlers, logging.root.level) == ([], logging.WARNING)
"""


def test_the_default_needs_no_network_prints_nothing_and_leaves_logging_alone() -> None:
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_twhin_bert_is_never_another_model_under_its_name(tmp_path: Path) -> None:
    if importlib.util.find_spec("transformers") is None:
        with pytest.raises(ConfigError, match=r"'transformers' is not installed.*'wordllama' or 'minilm'"):
            embedder("twhin-bert")
        return
    with pytest.raises(ConfigError, match="the weights of TwHIN-BERT are not in"):
        embedder(f"twhin-bert:{tmp_path}").embed(["a"])
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(ConfigError, match="holds no weights of TwHIN-BERT"):
        embedder(f"twhin-bert:{tmp_path / 'other'}").embed(["a"])
