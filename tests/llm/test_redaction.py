"""Endpoints that echo the key they were sent: it is in no reply, no error and no log."""

from __future__ import annotations

import base64
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest

from mesa_llm import Access
from mesa_llm.engine.event_loop import submit
from mesa_llm.errors import BadReply
from mesa_llm.llm.litellm import LiteLLM
from mesa_llm.llm.openai.client import OpenAIHTTP
from mesa_llm.llm.protocol import LLM
from mesa_llm.llm.redaction import Redaction
from mesa_llm.records import Reply, Request, ToolCall
from tests.faulty_server import FaultyServer
from tests.honest_reply import completion
from tests.llm.human.questions import ACTIONS, ask
from tests.pot import PotModel

SECRET = "sk-test/AbC+123=xyz?98765"


@pytest.mark.parametrize(
    "echo",
    [
        SECRET,
        f"Your key is {SECRET}, isn't it?",
        json.dumps({"key": SECRET}),
        quote(SECRET, safe=""),
        "".join(f"%{octet:02x}" for octet in SECRET.encode()),
        "".join(f"\\u{ord(character):04x}" for character in SECRET),
        SECRET.encode().hex(),
        "Basic " + base64.b64encode(f":{SECRET}".encode()).decode(),
        "Basic " + base64.b64encode(f"me:{SECRET}".encode()).decode(),
        "Basic " + base64.b64encode(f"any:{SECRET}".encode()).decode(),
        "Basic " + base64.urlsafe_b64encode(f"some:{SECRET}".encode()).decode(),
        f"cut: {SECRET[:-6]}",
    ],
)
def test_a_secret_is_found_in_every_form(echo: str) -> None:
    cleaned = Redaction([SECRET]).text(echo)
    assert "(key)" in cleaned
    assert SECRET[3:12] not in cleaned


@pytest.mark.parametrize("text", ["mine, all mine", "a cat", "caf\u00e9\u200b, ﬁne", "100 %, no \\ at all", "sk-"])
def test_ordinary_words_stay(text: str) -> None:
    assert Redaction(["mine", "cat", SECRET, "2026", ""]).text(text) == text


def echo_everywhere(body: dict[str, object], number: int) -> dict[str, object]:
    arguments = json.dumps({"metres": 1, "note": {"deep": [SECRET, {SECRET: f"x{SECRET}"}]}})
    answer = completion(f"Key: {SECRET}", [("walk", arguments), (f"walk-{SECRET}", "{}")], body=body)
    message = answer["choices"][0]["message"] | {"reasoning_content": f"I think {SECRET}"}
    return {**answer, "model": f"tiny-{SECRET}", "choices": [{"message": message, "finish_reason": SECRET}]}


class Custom:
    """A transport of a user's own, whose key is in the environment."""

    async def reply(self, request: Request) -> Reply:
        return Reply(SECRET, (ToolCall("walk", {"note": [SECRET]}),), 1, 1, reasoning=SECRET, model=SECRET)


@pytest.mark.parametrize(
    "transport",
    [
        lambda url: OpenAIHTTP("tiny", url, SECRET),
        lambda url: LiteLLM("openai/tiny", url, SECRET),
        lambda url: Custom(),
    ],
)
def test_no_reply_quotes_a_key(transport: Callable[[str], LLM], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", SECRET)
    with FaultyServer(echo_everywhere) as server, closing(Access()) as access:
        reply = submit(access.open(transport(server.url)).transport.reply(ask(tools=ACTIONS))).result(60)
    assert "(key)" in reply.text
    assert reply.tool_calls
    assert SECRET not in repr(reply)


def test_a_password_in_the_address_is_kept_out_as_well() -> None:
    with FaultyServer(lambda body, number: "I got Basic YW5uOnB3LTIzNC1zZWNyZXQ=, that is pw-234-secret") as server:
        access = Access()
        llm = access.open(f"tiny@{server.url.replace('//', '//ann:pw-234-secret@')}").transport
        reply = submit(llm.reply(ask())).result(10)
        access.close()
    assert reply.text == "I got Basic (key), that is (key)"


def test_an_error_of_a_transport_of_ones_own_quotes_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", SECRET)

    class Broken:
        async def reply(self, request: Request) -> Reply:
            raise BadReply(f"the key {SECRET} is odd")

    with closing(Access(attempts=1)) as access, pytest.raises(BadReply, match=r"the key \(key\) is odd"):
        submit(access.open(Broken()).transport.reply(ask())).result(10)


def test_the_log_of_a_run_holds_no_key(tmp_path: Path) -> None:
    with FaultyServer(echo_everywhere) as server:
        model = PotModel(2, "m", log=tmp_path / "run.sqlite", api_base=server.url, api_key=SECRET)
        model.step()
        model.close()
    with closing(sqlite3.connect(tmp_path / "run.sqlite")) as log:
        dump = "\n".join(log.iterdump())
    assert "(key)" in dump
    assert SECRET not in dump


@pytest.mark.parametrize("letter", ["\u200b", "\xad", "\u2060", "\ufeff", "\u200d"])
def test_a_key_with_invisible_letters_inside_is_found_in_replies_and_errors(letter: str) -> None:
    hidden = letter.join(SECRET)
    reply = Redaction([SECRET]).reply(Reply(text=f"Key: {hidden}", tool_calls=(ToolCall("walk", {"note": hidden}),)))
    assert (reply.text, reply.tool_calls[0].arguments) == ("Key: (key)", {"note": "(key)"})
    assert Redaction([SECRET]).text(f"no such key: {hidden}") == "no such key: (key)"
