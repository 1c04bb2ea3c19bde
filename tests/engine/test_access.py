"""Where a model string leads, which key goes there, what a run log calls it, and what many models share."""

from __future__ import annotations

import asyncio
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mesa_llm import Access, BudgetExceeded, ConfigError, Endpoint, ReplayError, RunLog
from mesa_llm.engine.access import EngineOptions
from mesa_llm.engine.event_loop import submit
from mesa_llm.engine.opening import OpenedModels, written_options
from mesa_llm.engine.recorder import Recorder
from mesa_llm.llm.keys import AddressSource, Keyring, Origin, agree
from mesa_llm.llm.litellm import LiteLLM
from mesa_llm.llm.openai.client import OpenAIHTTP
from mesa_llm.llm.scripted import ScriptedLLM
from mesa_llm.records import Decision, Reply
from tests.faulty_server import FaultyServer
from tests.llm.human.questions import ask
from tests.pot import PotModel

BASE = "http://localhost:8000/v1"
NAME = f"my-model@{BASE}"


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let neither the environment nor a file of the machine say where models are."""
    names = ("MESA_LLM_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE", "OLLAMA_API_BASE")
    for name in (*names, "MESA_LLM_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)


def key_sent(server: FaultyServer, llm: str, is_auxiliary: bool = False, **options: Any) -> str | None:
    """Ask once; return the key that arrived."""
    access = Access(**options)
    submit(access.open(llm, is_auxiliary=is_auxiliary).transport.reply(ask())).result(10)
    access.close()
    return server.requests[-1].headers.get("authorization")


@pytest.mark.parametrize(
    ("access", "llm"),
    [
        (Access(api_base=BASE), "my-model"),
        (Access(api_base=BASE + "/"), "openai/my-model"),
        (Access(), f"my-model@{BASE}/chat/completions"),
        (Access(), f"my-model@{BASE.replace('//', '//ann:secret@')}?key=secret"),
        (Access(endpoints={"judge": Endpoint(model="my-model", api_base=BASE)}), "judge"),
        (Access(), OpenAIHTTP("my-model", BASE)),
        (Access(), LiteLLM("openai/my-model", BASE)),
    ],
)
def test_one_model_at_one_address_has_one_name(access: Access, llm: Any) -> None:
    assert access.open(llm).capabilities.name == NAME


@pytest.mark.parametrize(
    ("llm", "name"),
    [
        ("openai/gpt-5-mini", "openai/gpt-5-mini"),
        ("ollama/qwen3", "qwen3@http://localhost:11434/v1"),
        ("random", "random"),
        ("human", "human"),
        ("local", "local"),
        ("local:small.gguf", "local:small.gguf"),
    ],
)
def test_what_has_no_address_of_its_own_is_named_by_its_string(llm: str, name: str) -> None:
    assert Access().open(llm).capabilities.name == Access().name_of(llm) == name


def test_ollama_and_providers_are_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_API_BASE", "http://gpu:11434")
    monkeypatch.setenv("AZURE_API_BASE", "https://me.example/")
    assert Access().name_of("ollama/qwen3") == "qwen3@http://gpu:11434/v1"
    assert Access().open("azure/gpt").capabilities.name == "azure/gpt@https://me.example"


def test_a_key_goes_only_where_it_was_given_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MESA_LLM_API_KEY", "mine")
    monkeypatch.setenv("OPENAI_API_KEY", "openais")
    monkeypatch.setenv("JUDGE_KEY", "judges")
    with FaultyServer() as server, FaultyServer() as other:
        judge = {"judge": Endpoint(model="j", api_base=other.url, key_env="JUDGE_KEY")}
        assert key_sent(server, "openai/m", api_base=server.url) == "Bearer mine"
        assert key_sent(server, f"m@{server.url}") == "Bearer mine"
        assert key_sent(server, "m", api_base=server.url, api_key="given") == "Bearer given"
        assert key_sent(server, f"m@{server.url}", is_auxiliary=True, api_base=server.url) == "Bearer mine"
        assert key_sent(other, f"m@{other.url}", api_base=server.url) is None
        assert key_sent(other, f"m@{other.url}", is_auxiliary=True, api_key="given") is None
        assert key_sent(other, "judge", is_auxiliary=True, api_base=server.url, endpoints=judge) == "Bearer judges"
        assert key_sent(other, "judge", api_base=server.url, endpoints=judge, api_key="") is None
        assert key_sent(server, f"m@{server.url}", api_key="") is None


def test_a_blank_key_of_the_environment_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MESA_LLM_API_KEY", " ")
    monkeypatch.setenv("OPENAI_API_KEY", "openais")
    keys = Keyring(None, None)
    assert keys.key_for(AddressSource("https://api.openai.com/v1", Origin.USER)) == "openais"
    assert keys.key_for(AddressSource("http://api.openai.com/v1", Origin.USER)) == ""
    assert keys.key_for(AddressSource("https://api.openai.com/v1", Origin.LOG)) == ""


@pytest.mark.parametrize("origin", list(Origin))
def test_a_key_goes_out_by_where_the_name_of_the_host_came_from(origin: Origin, monkeypatch) -> None:
    monkeypatch.setenv("MESA_LLM_API_KEY", "mine")
    monkeypatch.setenv("JUDGE_KEY", "judges")
    trusted = origin not in (Origin.LOG, Origin.FOLDER)
    keys = Keyring(None, None)
    assert keys.key_for(AddressSource(BASE, origin)) == ("mine" if trusted else "")
    if trusted:
        assert keys.key_for(AddressSource(BASE, origin, "JUDGE_KEY", is_named=True)) == "judges"
    else:
        with pytest.raises(ConfigError, match=r"JUDGE_KEY .* sent to http://localhost:8000/v1.*mesa-llm trust"):
            keys.key_for(AddressSource(BASE, origin, "JUDGE_KEY", is_named=True))


JUDGE = '[endpoints.judge]\nmodel = "m"\napi_base = "{url}"\nkey_env = "JUDGE_KEY"\n'


def test_a_file_of_a_folder_gets_no_key_until_it_is_agreed_to(monkeypatch) -> None:
    monkeypatch.setenv("JUDGE_KEY", "judges")
    file = Path("mesa-llm.toml")
    with FaultyServer() as server:
        file.write_text(JUDGE.format(url=server.url))
        with pytest.raises(ConfigError, match=r"JUDGE_KEY .* not agreed"):
            key_sent(server, "judge")
        assert server.count == 0
        agree(file.read_bytes(), file)
        assert key_sent(server, "judge") == "Bearer judges"
        file.write_text(JUDGE.format(url=server.url) + "# changed")
        with pytest.raises(ConfigError, match="mesa-llm trust"):
            key_sent(server, "judge")
        monkeypatch.setenv("MESA_LLM_CONFIG", "mesa-llm.toml")
        assert key_sent(server, "judge") == "Bearer judges"


def test_a_file_without_keys_needs_no_agreement() -> None:
    with FaultyServer() as server:
        Path("mesa-llm.toml").write_text(f'[endpoints.judge]\nmodel = "m"\napi_base = "{server.url}"\n')
        assert key_sent(server, "judge") is None


def test_a_second_model_goes_to_its_provider_and_not_to_api_base() -> None:
    models = OpenedModels(Recorder(RunLog(), lambda *used: None), {"api_base": BASE})
    models.declare(["my-model"])
    assert models.open("openai/gpt-5-mini", is_auxiliary=True).name == "openai/gpt-5-mini"
    assert models.open("my-model", is_auxiliary=True).name == NAME


def test_without_keys_no_provider_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "openais")
    with pytest.raises(ConfigError, match="NAME@URL"):
        Access(api_key="").open("openai/gpt-5-mini")


def test_endpoints_are_read_from_a_file() -> None:
    Path("mesa-llm.toml").write_text(
        f'[endpoints.judge]\nmodel = "my-model"\napi_base = "{BASE}"\nconcurrency = 3\n', "utf-8-sig"
    )
    route = Access().open("judge")
    assert (route.capabilities.name, route.concurrency) == (NAME, 3)


@pytest.mark.parametrize("named", [False, True])
def test_folder_endpoint_is_reported_once_with_every_address(
    named: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    table = '[endpoints.gpt-4o]\nmodel = "tiny"\napi_base = "http://a.example/v1"\n'
    Path("mesa-llm.toml").write_text(table + 'replicas = ["http://user:secret@b.example/v1"]\n')
    if named:
        monkeypatch.setenv("MESA_LLM_CONFIG", str(Path("mesa-llm.toml").absolute()))
    with closing(Access()) as access:
        access.open("gpt-4o")
        access.open("gpt-4o")
    said = (
        f"endpoint of {Path('mesa-llm.toml').absolute()}: its requests go to http://a.example/v1, http://b.example/v1"
    )
    assert caplog.text.count(said) == (not named)
    assert "secret" not in caplog.text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[endpoints.judge]\nmodel = 'm'\nspeed = 3", "endpoint 'judge': speed: .*fields: model, api_base"),
        ("[endpoints.judge]\nmodel = 'm'\nconcurrency = 0", "endpoint 'judge': concurrency"),
        ("[endpoints.judge]\nmodel = 'm'\napi_base = 'host'", "endpoint 'judge': api_base must be a URL"),
        ("[endpoints.judge]\nmodel = 'm'\napi_base = 'http://a/v1'\nreplicas = ['host']", "'judge': .* got 'host'"),
        ("[endpoints.rule]\nmodel = 'm'", "'rule' cannot name an endpoint"),
        ("[judge]\nmodel = 'm'", "holds judge; only tables"),
        ("[endpoints", "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(text: str, why: str) -> None:
    Path("mesa-llm.toml").write_text(text)
    with pytest.raises(ConfigError, match=why):
        Access().open("judge")


def test_many_models_in_threads_spend_one_budget_at_one_pace() -> None:
    with FaultyServer(latency_s=0.01) as server:
        access = Access(api_base=server.url, max_calls=20, concurrency=2)
        models = [PotModel(6, "stub", rng=seed, access=access) for seed in range(4)]
        errors: list[BudgetExceeded] = []

        def run(model: PotModel) -> None:
            try:
                model.run_for(3)
            except BudgetExceeded as error:
                errors.append(error)

        threads = [threading.Thread(target=run, args=(model,)) for model in models]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        access.close()
    assert (len(errors), server.count, server.peak_in_flight) == (4, 20, 2)


def test_what_waited_for_its_turn_while_dollars_were_spent_is_not_sent() -> None:
    priced = ScriptedLLM(lambda request: Reply("hm", dollars=1.0), delay_s=0.01)
    access = Access(max_dollars=2.0, concurrency=1)

    async def ask_all() -> list[Any]:
        llm = access.open(priced).transport
        return await asyncio.gather(*(llm.reply(ask()) for _ in range(9)), return_exceptions=True)

    kinds = [type(reply) for reply in submit(ask_all()).result(10)]
    assert kinds == [Reply] * 2 + [BudgetExceeded] * 7


def test_shared_access_and_options_of_ones_own_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match="max_calls given besides access="):
        PotModel(1, "rule", access=Access(), max_calls=3)


def recorded(log: Path, server: FaultyServer, **options: Any) -> PotModel:
    """Run two steps with a log."""
    model = PotModel(2, "my-model", rng=1, log=log, api_base=server.url, **options)
    model.run_for(2)
    model.close()
    return model


def test_a_recording_goes_on_at_another_address_only_if_told_so(tmp_path: Path) -> None:
    log = tmp_path / "run.sqlite"
    with FaultyServer() as server:
        first = recorded(log, server)
        where = server.url
    with FaultyServer() as moved:
        with pytest.raises(ConfigError, match=rf"my-model at {where}, and now .* {moved.url}.*allow_new_endpoint=True"):
            recorded(log, moved)
        again = recorded(log, moved, allow_new_endpoint=True)
        assert (again.runlog.digest, moved.count) == (first.runlog.digest, 0)
        longer = PotModel(2, "my-model", rng=1, log=log, api_base=moved.url, allow_new_endpoint=True)
        longer.run_for(3)
        assert moved.count > 0
        assert longer.runlog.models() == [f"my-model@{where}"]
        longer.close()


def test_two_endpoints_share_no_recorded_reply(tmp_path: Path) -> None:
    request = ask()
    with FaultyServer() as one, FaultyServer() as other:
        models = OpenedModels(Recorder(RunLog(tmp_path / "run.sqlite"), lambda *used: None), {})
        for server in (one, other):
            opened = models.open(OpenAIHTTP("m", server.url))
            assert opened.llm is not None
            submit(opened.transport.reply(ask(*request.messages, model=opened.name))).result(10)
        models.close()
    assert (one.count, other.count) == (1, 1)


@pytest.mark.parametrize("llm", ["my-model", "NAME@URL"])
def test_a_replay_resolves_nothing_and_asks_nobody(llm: str, tmp_path: Path) -> None:
    log = tmp_path / "run.sqlite"
    with FaultyServer() as server:
        llm = llm.replace("NAME@URL", f"my-model@{server.url}/")
        live = PotModel(2, llm, rng=1, log=log, api_base=server.url)
        live.run_for(2)
        live.close()
    again = PotModel(2, llm, rng=1, log=log, replay=True)
    again.run_for(2)
    assert again.runlog.digest == live.runlog.digest
    with pytest.raises(ReplayError):
        again.step()


def test_a_replay_finds_an_endpoint_by_what_was_written_of_it(tmp_path: Path) -> None:
    options: EngineOptions = {"endpoints": {"judge": Endpoint(model="my-model", api_base=BASE)}}
    with closing(RunLog(tmp_path / "run.sqlite")) as log:
        log.begin({}, {"options": written_options(options)})
        log.keep(ask(model=NAME), Reply("fine"), 0.1)
    with closing(RunLog(tmp_path / "run.sqlite", "replay")) as log:
        assert OpenedModels(Recorder(log, lambda *used: None), {}).open("judge").name == NAME


def test_options_are_written_without_anything_secret() -> None:
    judge = Endpoint(model="j", api_base="https://host/v1?api-key=secret", key_env="JUDGE_KEY")
    parser = "p@http://ann:secret@host/v1"
    api_base = "https://secret@host:443/v1"
    document = written_options(
        {"api_base": api_base, "api_key": "secret", "endpoints": {"judge": judge}, "parser": parser}
    )
    assert "secret" not in repr(document) + repr(judge)
    assert document["api_base"] == "https://host/v1"
    assert document["endpoints"]["judge"]["key_env"] == "JUDGE_KEY"


def test_no_parameter_that_names_a_model_keeps_what_is_secret_in_its_address() -> None:
    at = f"m@{BASE.replace('//', '//ann:secret@')}?key=secret"
    model = PotModel(1, llm={"*": at, "Payer": at}, rng=1)
    assert model.runlog.manifest["parameters"]["llm"] == {"*": f"m@{BASE}", "Payer": f"m@{BASE}"}


def test_a_judge_is_never_asked_at_api_base_nor_with_the_key_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "openai-secret")
    monkeypatch.setenv("JUDGE_KEY", "judge-secret")
    with FaultyServer() as mine, FaultyServer() as its:
        judge = Endpoint(model="critic", api_base=its.url, key_env="JUDGE_KEY")
        model = PotModel(2, "my-model", rng=1, api_base=mine.url, endpoints={"judge": judge})
        model.step()
        (made,) = model.consult("judge", ["Well?"])
        assert model.engine.open("gpt-4o-mini", is_auxiliary=True).name == "gpt-4o-mini"
        model.close()
    assert isinstance(made, Decision)
    assert {request.body["model"] for request in mine.requests} == {"my-model"}
    assert {request.headers.get("authorization") for request in mine.requests} == {None}
    assert [request.body["model"] for request in its.requests] == ["critic"]
    assert its.requests[0].headers["authorization"] == "Bearer judge-secret"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"model": "m@http://user:pass-word@host/v1"}, "model: .*give that as api_base"),
        ({"model": "m", "key_env": "sk-pass-word"}, "key_env: .*not the key itself"),
    ],
)
def test_a_secret_in_the_wrong_field_of_an_endpoint_is_refused_and_not_quoted(fields, said) -> None:
    with pytest.raises(ConfigError, match=said) as refused:
        Access(endpoints={"judge": fields})
    assert "pass-word" not in str(refused.value)


def test_a_number_names_no_endpoint() -> None:
    with pytest.raises(ConfigError, match="3 cannot name an endpoint"):
        Access(endpoints={3: Endpoint(model="m")})  # pyright: ignore[reportArgumentType]


@pytest.mark.slow
def test_parser_of_an_unknown_provider_is_refused_before_any_request() -> None:
    with FaultyServer() as server:
        model = PotModel(1, f"stub@{server.url}", parser="neat")
        with pytest.raises(ConfigError, match="no provider is known for llm='neat'"):
            model.step()
    assert server.requests == []
