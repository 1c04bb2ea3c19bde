"""The embedded model really answers, in form, and the same in every process. What it says is never looked at."""

from __future__ import annotations

import asyncio
import gc
import json
import shutil
import sys
import time
import weakref
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from mesa_llm.cli.inspect import tables
from mesa_llm.errors import ConfigError, Refused
from mesa_llm.llm.local.model import LocalLLM, available_threads, chat_body, shared_model
from mesa_llm.llm.local.profile import CAPABLE, SMALLEST, Profile
from mesa_llm.records import ChatMessage, Reply, Request, Salt
from mesa_llm.tools.toolbox import ToolBox
from tests.llm.human.questions import ACTIONS, TOOLS, VOTE, Village, ask
from tests.llm.schema.test_grammar import Tree
from tests.pot import PotModel
from tests.processes import run

SHORT: dict[str, Any] = {"max_tokens": 60, "temperature": 0.7}


def replied(llm: LocalLLM, request: Request) -> Reply:
    return asyncio.run(llm.reply(request))


def test_a_reply_says_what_it_cost(local: LocalLLM) -> None:
    reply = replied(local, ask(settings={"max_tokens": 5}))
    assert (reply.reply_tokens, reply.finish, reply.dollars) == (5, "length", 0.0)
    assert 10 < reply.prompt_tokens < 40
    assert reply.latency_s > 0
    assert reply.model.startswith("SmolLM2")


@pytest.mark.parametrize("agent", range(1, 5))
def test_a_choice_is_always_a_call_that_passes_the_check(local: LocalLLM, agent: int) -> None:
    request = ask(agent=agent, tools=tuple(TOOLS.values()), options={"neighbour": (4, 7)}, settings=SHORT)
    (call,) = replied(local, request).tool_calls
    checked = ToolBox.of(object(), 1, [Village()]).check(call)
    assert checked.arguments.get("neighbour", 4) in (4, 7)


def test_an_answer_satisfies_its_schema(local: LocalLLM) -> None:
    reply = replied(local, ask(schema=VOTE, settings=SHORT))
    jsonschema.validate(json.loads(reply.text), VOTE)


def test_a_reply_that_is_cut_off_is_given_as_text(local: LocalLLM) -> None:
    talk = ask(tools=(TOOLS["talk_to"],), options={"neighbour": (4,)}, settings={"max_tokens": 4})
    reply = replied(local, talk)
    assert (reply.tool_calls, reply.finish) == ((), "length")
    assert reply.text.startswith('{"action"')


def test_crutches_are_put_on_the_smallest_model_alone() -> None:
    request = ask(settings={"max_tokens": 900})
    small, capable = (chat_body(request, profile) for profile in (SMALLEST, CAPABLE))
    assert (small["max_tokens"], small["repeat_penalty"]) == (240, 1.15)
    assert capable["max_tokens"] == 900
    assert "repeat_penalty" not in capable
    own = LocalLLM(Path("own.gguf"))
    assert (own.name, own.needs_options, LocalLLM().needs_options) == ("local:own.gguf", False, True)


def test_the_number_of_threads_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MESA_LLM_THREADS", "3")
    assert available_threads() == 3
    monkeypatch.setenv("MESA_LLM_THREADS", "all")
    with pytest.raises(ConfigError, match="MESA_LLM_THREADS must be a number of threads such as 2, got 'all'"):
        available_threads()


def test_a_prompt_that_is_too_long_is_refused_with_its_length(local: LocalLLM) -> None:
    with pytest.raises(Refused, match=r"has \d{4} tokens.*reads 4096"):
        replied(local, ask(ChatMessage("user", "rain " * 5000)))


@pytest.mark.parametrize(
    "schema",
    [
        Tree.model_json_schema(),
        {},
        {"type": "number", "minimum": -0.5, "maximum": 1e6},
        {"type": "integer", "exclusiveMinimum": -1234, "maximum": 98765},
        {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "boolean"}}},
        {"enum": ["", 'a "quoted" \\ word', "line\nbreak", "é😀", None, 1.5]},
        {"properties": {"a": {"const": 1}, "b": {"const": 2}}},
        {"type": "string", "minLength": 3, "maxLength": 1500},
    ],
)
def test_llama_cpp_reads_every_kind_of_grammar(local: LocalLLM, schema: dict[str, Any]) -> None:
    assert replied(local, ask(schema=schema, settings={"max_tokens": 1})).reply_tokens <= 1


def test_a_waiting_request_can_be_withdrawn_and_a_running_one_stopped(local: LocalLLM) -> None:
    async def cancel_both() -> float:
        long = [asyncio.ensure_future(local.reply(ask(agent=agent, settings={"max_tokens": 1500}))) for agent in (1, 2)]
        await asyncio.sleep(0.3)
        for waiting in long:
            waiting.cancel()
        await asyncio.wait(long)
        start = time.process_time()  # the model runs in this process
        await local.reply(ask(settings={"max_tokens": 1}))
        return time.process_time() - start

    # Twice 400 tokens take 8 s or more.
    assert asyncio.run(cancel_both()) < 8


def test_all_that_use_a_file_share_one_model_until_the_last_lets_go(tmp_path: Path) -> None:
    one, other = (
        shared_model(path, Profile("local:a.gguf")) for path in (tmp_path / "a.gguf", tmp_path / "." / "a.gguf")
    )
    assert one is other
    gone = weakref.ref(one)
    del one, other
    gc.collect()
    assert gone() is None


def test_a_closed_model_loads_again_when_asked(model_path: Path) -> None:
    llm = LocalLLM(model_path, SMALLEST)
    first = replied(llm, ask(settings={"max_tokens": 3}))
    asyncio.run(llm.close())
    assert replied(llm, ask(settings={"max_tokens": 3})).text == first.text


PROMPTS = [
    ask(agent=number, tools=ACTIONS[: number % 4], settings={"max_tokens": 16, "temperature": 0.7})
    for number in (1, 3, 4)
]
IN_A_PROCESS = """
import asyncio, json, sys
from pathlib import Path
from mesa_llm.llm.local.model import LocalLLM
from mesa_llm.llm.local.profile import SMALLEST
from tests.llm.local.test_model import PROMPTS

async def main():
    llm = LocalLLM(Path(sys.argv[1]), SMALLEST)
    replies = await asyncio.gather(*(llm.reply(request) for request in PROMPTS))
    print(json.dumps([[reply.text, repr(reply.tool_calls)] for reply in replies]))

asyncio.run(main())
"""


def test_a_fresh_process_gives_the_same_replies_and_prints_nothing(local: LocalLLM, model_path: Path) -> None:
    backwards = [replied(local, request) for request in reversed(PROMPTS)]
    done = run("-c", IN_A_PROCESS, str(model_path))
    assert (done.returncode, done.err) == (0, "")
    assert json.loads(done.out) == [[reply.text, repr(reply.tool_calls)] for reply in reversed(backwards)]


def test_a_reply_does_not_depend_on_whether_its_prompt_was_just_read(local: LocalLLM) -> None:
    """With a prompt that was cached whole, five of twelve replies changed; each of these did."""
    numbers = (0, 1, 5)
    system, settings = (
        ChatMessage("system", "You are Ann, who likes buses. " * 20),
        {"temperature": 0.8, "max_tokens": 60},
    )
    for number in numbers:
        user = ChatMessage("user", f"Tell me about number {number} in two sentences.")
        request = Request("local", (system, user), Salt(1, 1, 1, "decide", number), settings=settings)
        assert replied(local, request).text == replied(local, request).text


def test_a_capable_model_gives_one_reply_whatever_was_asked_before(capable_path: Path) -> None:
    """Compare replies to prompts read whole with those to prompts that begin, or end, as the one before."""
    system = ChatMessage("system", "You are Ann, who lives alone by the sea, and likes books and quiet evenings. " * 6)
    evening = "The whole village meets tonight in the old mill, and there will be music. " * 5

    def request(*turns: str) -> Request:
        chat = [ChatMessage("assistant" if number % 2 else "user", turn) for number, turn in enumerate(turns)]
        return Request("local:1.5b", (system, *chat), Salt(1, 1, 1, "decide", 0), settings=SHORT | {"max_tokens": 8})

    def fresh(one: Request) -> str:
        unlike = Request(
            "local:1.5b", (ChatMessage("user", "Hi."),), Salt(1, 1, 1, "decide", 1), settings={"max_tokens": 1}
        )
        replied(llm, unlike)
        return replied(llm, one).text

    llm = LocalLLM(capable_path, CAPABLE)
    go, stay = request(f"{evening}Will you go?"), request(f"{evening}Will you stay?")
    first = fresh(go)
    talk = request(f"{evening}Will you go?", first, "Why?")
    expected = [first, fresh(stay), fresh(talk)]
    for order in ([go, go, stay], [stay, go, talk], [talk, stay, talk]):
        assert [replied(llm, one).text for one in order] == [expected[[go, stay, talk].index(one)] for one in order]


def test_a_run_of_a_model_on_it_is_the_same_twice(model_path: Path) -> None:
    digests = set()
    for _ in range(2):
        model = PotModel(2, "local", rng=1)
        model.step()
        digests.add((model.runlog.digest, model.usage.calls))
        assert (model.engine.decisions, model.usage.failures) == (2, 0)
    assert len(digests) == 1


@pytest.fixture
def unloaded(model_path: Path, tmp_path: Path) -> Path:
    """Copy the model's file, so that none that is loaded already is shared."""
    return Path(shutil.copyfile(model_path, tmp_path / "model.gguf"))


def test_without_xllamacpp_the_text_says_what_to_install(unloaded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(ConfigError, match="pip install xllamacpp"):
        replied(LocalLLM(unloaded), ask())


def test_a_missing_library_of_the_system_is_named(
    unloaded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "xllamacpp.py").write_text("raise ImportError('libgomp.so.1: cannot open shared object file')")
    monkeypatch.delitem(sys.modules, "xllamacpp", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError, match=r"libgomp\.so\.1.*apt-get install libgomp1"):
        replied(LocalLLM(unloaded), ask())


def test_a_file_that_is_no_model_is_said(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    with pytest.raises(ConfigError, match="there is no model file"):
        replied(LocalLLM(broken), ask())
    broken.write_bytes(b"no model")
    with pytest.raises(ConfigError, match="is no GGUF file"):
        replied(LocalLLM(broken), ask())


def test_a_run_log_says_what_was_sent_beside_the_messages(model_path: Path, tmp_path: Path) -> None:
    log = tmp_path / "run.sqlite"
    model = PotModel(1, "local", rng=1, log=log)
    model.step()
    model.close()
    shown = "\n".join(tables(log, ["calls"], None, csv=False, full=True))
    assert "[sent with it]\n    You can:\n" in shown
    assert "    root ::= " in shown
    replayed = PotModel(1, "local", rng=1, log=log, replay=True)
    replayed.step()
    assert replayed.runlog.digest == model.runlog.digest
