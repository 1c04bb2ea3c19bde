"""A prompt that an endpoint cuts is noticed once; one that it reads whole, never."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable

import pytest

from mesa_llm.llm.openai.client import OpenAIHTTP
from mesa_llm.llm.openai.truncation_detector import TruncationDetector
from mesa_llm.records import ChatMessage
from tests.faulty_server import FaultyServer
from tests.honest_reply import completion
from tests.llm.human.questions import ask

ENGLISH = "The streets are very busy today, and the buses are late. "
CHINESE = "今天街上很忙，公共汽车也晚点了。"


def is_found(prompts: Iterable[tuple[str, int]]) -> bool:
    """Check whether prompts, each with the number of tokens read of it, are known to be cut."""
    watch = TruncationDetector()
    return any(watch.look((ChatMessage("user", text),), tokens) for text, tokens in prompts)


def english(n_characters: int) -> str:
    return (ENGLISH * (n_characters // len(ENGLISH) + 1))[:n_characters]


@pytest.mark.parametrize(
    "prompts",
    [
        [(english(20_800), 2048)],
        [(english(40_000), 4096)],
        [(english(20_000 + 900 * n), 2046) for n in range(4)],
        [(english(9_500 + 900 * n), 2048) for n in range(4)],
        [(CHINESE * (200 + 30 * n), 2048) for n in range(4)],
        [(english(400), 91), *((english(20_000 + 900 * n), 2047) for n in range(4))],
    ],
)
def test_a_cut_prompt_is_found(prompts: list[tuple[str, int]]) -> None:
    assert is_found(prompts)


@pytest.mark.parametrize(
    "prompts",
    [
        [(english(9_000), 2048)],
        [(CHINESE * 100, 2048)],
        [(english(12_000), 2_050)] * 5,
        [(" " * 20_000 + english(4_000), 1024)],
        [("=" * 20_000, 512)],
        [(english(20_000), 5_000), *((english(20_000 + 900 * n), 300) for n in range(5))],
        [(english(20_000 + n), 300) for n in range(50)],
        [(english(20_800), 10), (english(20_800), 0)],
    ],
)
def test_a_prompt_that_is_read_whole_is_not(prompts: list[tuple[str, int]]) -> None:
    assert not is_found(prompts)


def test_no_tokenizer_between_two_and_six_characters_is_taken_for_a_cut() -> None:
    rng = random.Random(1)
    for ratio in (0.7, 2, 4, 5, 6):
        lengths = [rng.randint(1_000, 30_000) for _ in range(2_000)]
        assert not is_found((english(length), round(length / ratio)) for length in lengths)


def test_one_warning_says_what_to_set(caplog: pytest.LogCaptureFixture) -> None:
    request = ask(ChatMessage("user", english(20_800)))

    async def thrice(url: str) -> None:
        llm = OpenAIHTTP("tiny", url)
        for _ in range(3):
            await llm.reply(request)
        await llm.close()

    with FaultyServer(lambda body, number: completion("Yes.", prompt_tokens=2048, completion_tokens=2)) as server:
        asyncio.run(thrice(server.url))
    (record,) = caplog.records
    assert "only 2,048 tokens of a prompt of 20,800 characters" in record.getMessage()
    assert all(name in record.getMessage() for name in ("num_ctx", "--ctx-size", "--max-model-len"))
