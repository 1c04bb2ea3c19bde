"""What a replay says of a log that holds something else than its replies give: every column and fact is tried."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import Field

from mesa_llm import ActionResult, Observation, ScriptedLLM, ToolError, Turn, action
from mesa_llm.cli.run import replay_run
from mesa_llm.engine.activation import llm_agents
from mesa_llm.engine.survey import Question
from mesa_llm.errors import MesaLLMError, ServerError
from mesa_llm.llm.replies import as_reply, call
from mesa_llm.runlog.comparison import FACTS_NOT_COMPARED, NOT_COMPARED
from mesa_llm.runlog.layout import columns
from mesa_llm.runlog.tables import call_checksum, checksum
from tests.pot import Payer, Pot, PotModel


class TalkingPot(Pot):
    """A pot whose answers have facts, and that takes answers to questions."""

    @action
    def pay(self, agent_id: int, coins: Annotated[int, Field(ge=0, le=10)]) -> ActionResult:
        """Pay into the pot.

        Args:
            coins: How many coins you pay.
        """
        if coins == 7:
            raise ToolError("the pot takes no seven coins.")
        self.coins += coins
        return ActionResult(f"You paid {coins}.", coins=coins)

    def receive(self, agent_id: int, answer: Any, label: str) -> str:
        return f"noted: {answer}"


class FullModel(PotModel):
    """A model whose log holds something in every column."""

    def __init__(self, n_agents: int = 2, llm: Any = "rule", rng: Any = None, **options: Any) -> None:
        super().__init__(0, llm, rng, **options)
        self.pot = TalkingPot()
        self.worlds = (self.pot,)
        Payer.create_agents(self, n_agents, config="You like round numbers.")
        self.activation = self._turns

    def _turns(self, model: Any) -> list[list[Any]]:
        asked = Observation("How many coins are there?", answer=int, label="guess")
        return [llm_agents(self), [Turn(agent, asked) for agent in llm_agents(self)]]

    def end_step(self) -> None:
        self.mailbox.send(1, [2], f"The pot holds {self.coins}.")
        self.survey([Question("Are you content?")])
        if self.now == 2:
            self.inject("It rains.")


def script(request: Any) -> Any:
    """Pay, refuse to be served, reply badly and guess, by agent and step."""
    if request.salt.purpose != "decide":
        return ServerError("nobody asks") if request.salt.agent == 2 else "I am content."
    if request.schema is not None:
        return "3" if request.salt.agent == 1 else "```json\n4\n```"
    if request.salt.time == 3 and request.salt.agent == 2:
        return ServerError("the server is down")
    paid = call("pay", coins=7 if request.salt.time == 2 else request.salt.agent)
    return replace(as_reply(paid, "script"), text="Coins are heavy.")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Record a run of which the answers to a survey from outside are not part."""
    log = tmp_path_factory.mktemp("log") / "run.sqlite"
    model = FullModel(llm=ScriptedLLM(script), rng=1, log=log, attempts=1)
    model.run_for(4)
    model.close()
    return log.read_bytes()


def verdict(log: Path) -> str:
    """Return what a replay finds: a difference, an error, or nothing."""
    try:
        figures = replay_run(log, is_quiet=True, say=print, trust=True)
    except MesaLLMError as error:
        return str(error)
    return "\n".join(figures["differences"])


def other(value: Any) -> Any:
    """Return another value of the same kind, of the same length if it is JSON."""
    match value:
        case int() | float():
            return value + 1
        case bytes():
            return value[:-1] + bytes([value[-1] ^ 1])
        case _:
            text = str(value)
            index = next((index for index, letter in enumerate(text) if letter.isalnum()), 0)
            return text[:index] + ("7" if text[index] != "7" else "8") + text[index + 1 :]


def forge(log: Path, table: str, column: str) -> None:
    """Change a value in a column, and make the sums of its row anew."""
    with closing(sqlite3.connect(log)) as database, database:
        where = f"FROM {table} WHERE {column} IS NOT NULL AND {column} != '' ORDER BY rowid DESC"
        row_id, value = database.execute(f"SELECT rowid, {column} {where} LIMIT 1").fetchone()
        database.execute(f"UPDATE OR REPLACE {table} SET {column} = ? WHERE rowid = ?", (other(value), row_id))
        names = "key, agent, time, reply, error_kind, error, prompt_tokens, reply_tokens, dollars, latency_s, attempts"
        if table == "calls" and column != "checksum":
            values = database.execute(f"SELECT {names} FROM calls WHERE rowid = ?", (row_id,)).fetchone()
            database.execute("UPDATE calls SET checksum = ? WHERE rowid = ?", (call_checksum(*values), row_id))
        if (table, column) == ("texts", "text"):
            database.execute("UPDATE texts SET hash = ? WHERE rowid = ?", (checksum(other(value)), row_id))


COLUMNS = [(table, name) for table, names in columns().items() for name in names if table != "manifest"]


@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_a_changed_value_is_found_unless_it_is_declared_not_to_be_compared(
    table: str, column: str, whole: bytes, tmp_path: Path
) -> None:
    log = tmp_path / "run.sqlite"
    log.write_bytes(whole)
    assert verdict(log) == ""
    forge(log, table, column)
    assert verdict(log) or f"{table}.{column}" in NOT_COMPARED


def test_what_is_declared_not_to_be_compared_exists() -> None:
    assert set(NOT_COMPARED) <= {f"{table}.{name}" for table, name in COLUMNS}


def test_a_changed_fact_is_found_unless_it_is_declared_not_to_be_compared(whole: bytes, tmp_path: Path) -> None:
    log = tmp_path / "run.sqlite"
    log.write_bytes(whole)
    with closing(sqlite3.connect(log)) as database:
        facts = dict(database.execute("SELECT name, value FROM manifest"))
    unseen: list[str] = []
    for name, value in facts.items():
        log.write_bytes(whole)
        with closing(sqlite3.connect(log)) as database, database:
            database.execute("UPDATE manifest SET value = ? WHERE name = ?", (json.dumps(changed(value)), name))
        unseen += [] if verdict(log) else [name]
    assert set(unseen) <= set(FACTS_NOT_COMPARED)


def changed(text: str) -> Any:
    """Return the value of a fact with something else in it."""
    match json.loads(text):
        case dict() as fields if fields:
            name = sorted(fields)[-1]
            return {**fields, name: "other"}
        case list() as rows if rows:
            return [{**rows[0], "intervention": {"kind": "news", "text": "It snows."}}, *rows[1:]]
        case value:
            return other(value) if value else {"llm=other": "0"}


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("DELETE FROM actions WHERE rowid = 1", "actions, step 1: recorded '3 rows', now '4 rows'"),
        (
            "INSERT INTO events VALUES (2, 'pot', 'burst', '{}', 'It burst.')",
            "events, step 2: recorded '2 rows', now '1 row'",
        ),
        ("INSERT INTO events VALUES (9, 'pot', 'burst', '{}', 'It burst.')", "events, step 9: recorded 'rows'"),
        ("INSERT INTO events VALUES (NULL, 'pot', 'burst', '{}', 'It burst.')", "events: recorded 'rows'"),
        ("UPDATE decisions SET text = NULL", "decisions.text, step 1, agent 1: recorded 'None', now 'Coins are"),
        ("UPDATE actions SET ok = NOT ok", "actions.ok, step 1, agent 1: recorded '0', now '1'"),
        ("UPDATE steps SET measures = '{}' WHERE time = 4", "steps.measures, step 4: recorded '{}', now '{\"coins\""),
        ("DELETE FROM answers WHERE rowid = 2", "answers, step 1, agent 2: recorded 'no such row'"),
        ("DELETE FROM steps WHERE time = 2", "steps, step 2: recorded '0 rows', now '1 row'"),
    ],
)
def test_rows_that_were_added_removed_or_emptied_are_named(
    statement: str, found: str, whole: bytes, tmp_path: Path
) -> None:
    log = tmp_path / "run.sqlite"
    log.write_bytes(whole)
    with closing(sqlite3.connect(log)) as database, database:
        database.execute(statement)
    assert found in verdict(log)


def test_a_survey_from_outside_is_said_not_to_be_compared(whole: bytes, tmp_path: Path) -> None:
    log = tmp_path / "run.sqlite"
    log.write_bytes(whole)
    with closing(FullModel(llm=ScriptedLLM(script), rng=1, log=log, attempts=1)) as model:
        model.run_for(4)
        model.survey([Question("Who will win?")], purpose="exit_poll")
    figures = replay_run(log, is_quiet=True, say=print, trust=True)
    assert not figures["differences"]
    (others,) = [text for text in figures["not_compared"] if "exit_poll" in text]
    assert others == "2 requests of exit_poll, 2 answers to surveys, which the run itself does not ask for"


def test_a_changed_log_of_this_version_is_said_to_have_been_changed(whole: bytes, tmp_path: Path) -> None:
    log = tmp_path / "run.sqlite"
    log.write_bytes(whole)
    forge(log, "actions", "result")
    reason = replay_run(log, is_quiet=True, say=print, trust=True)["reason"]
    assert reason.endswith("nor the code of the model has changed since: the log was changed after it was recorded.")
