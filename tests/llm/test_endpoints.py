"""Where a model is asked by the variables of the environment, and files of endpoints from anybody."""

from __future__ import annotations

from pathlib import Path

import pytest

from mesa_llm.errors import ConfigError
from mesa_llm.llm.endpoints import OLLAMA, ollama_base, provider_base, read_endpoints


@pytest.mark.parametrize(
    ("host", "base"),
    [
        ("", OLLAMA),
        ("0.0.0.0", OLLAMA),
        ("0.0.0.0:9000", "http://localhost:9000/v1"),
        ("gpu", "http://gpu:11434/v1"),
        ("gpu.example:8080", "http://gpu.example:8080/v1"),
        (":8080", "http://localhost:8080/v1"),
        ("http://gpu", "http://gpu:80/v1"),
        ("https://gpu.example", "https://gpu.example:443/v1"),
        ("https://gpu.example/ollama/", "https://gpu.example:443/ollama/v1"),
        ("gpu:8080/ollama", "http://gpu:8080/ollama/v1"),
        ('"gpu:8080"', "http://gpu:8080/v1"),
        ("[::1]:8080", "http://[::1]:8080/v1"),
        ("::1", "http://[::1]:11434/v1"),
        ("http://gpu:8080/v1", "http://gpu:8080/v1"),
    ],
)
def test_ollama_is_where_its_own_variable_says(host: str, base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OLLAMA_API_BASE", raising=False)
    monkeypatch.setenv("OLLAMA_HOST", host)
    assert ollama_base() == base
    if host:
        assert provider_base("ollama_chat/qwen3") == base.removesuffix("/v1")


def test_what_is_no_address_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OLLAMA_API_BASE", raising=False)
    monkeypatch.setenv("OLLAMA_HOST", "ann:secret@gpu:many")
    with pytest.raises(ConfigError, match="OLLAMA_HOST holds 'gpu:many'"):
        ollama_base()


def test_a_file_that_is_nested_too_deeply_is_an_error_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "mesa-llm.toml").write_text(f"x = {'[' * 20_000}{']' * 20_000}", encoding="utf-8")
    with pytest.raises(ConfigError, match="nested too deeply"):
        read_endpoints(tmp_path / "mesa-llm.toml")
