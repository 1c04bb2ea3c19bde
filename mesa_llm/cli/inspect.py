"""`mesa-llm inspect`: the contents of a run log as text."""

from __future__ import annotations

import csv as csv_module
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import batched, chain
from pathlib import Path
from typing import Annotated, Any

import typer

from mesa_llm.canonical import in_natural_order
from mesa_llm.cli.command import command, say
from mesa_llm.cli.options import LogFile
from mesa_llm.errors import ConfigError
from mesa_llm.runlog import recovery
from mesa_llm.runlog.comparison import not_checked
from mesa_llm.runlog.layout import columns
from mesa_llm.runlog.log import RunLog
from mesa_llm.runlog.tables import loaded
from mesa_llm.text import clip, counted, figure_text, printable, spreadsheet_cell

PAGE = 500
"""Number of rows that are formatted at once."""

CELL = 60
"""Maximum number of characters of a cell in a terminal."""

EXCERPT = 400
"""Maximum number of characters of a text in a block, except with `--full`."""

HIDDEN_COLUMNS = frozenset({"key", "keys", "parameters", "options"})
"""Columns for machines, which only `--csv` shows."""

_USAGE_COLUMNS = (
    "calls",
    "failed",
    "prompt_tokens",
    "reply_tokens",
    "dollars",
    "mean_latency_s",
    "requests",
    "cached_tokens",
)


@command("inspect")
def inspect(
    file: LogFile,
    calls: Annotated[bool, typer.Option("--calls", help="Requests and their replies.")] = False,
    decisions: Annotated[bool, typer.Option("--decisions", help="Decisions of the agents.")] = False,
    actions: Annotated[bool, typer.Option("--actions", help="Actions and their outcomes.")] = False,
    events: Annotated[bool, typer.Option("--events", help="Events reported by the worlds.")] = False,
    usage: Annotated[bool, typer.Option("--usage", help="Calls, tokens and dollars by language model.")] = False,
    agent: Annotated[int | None, typer.Option(help="Only this agent.")] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Show whole prompts and replies, and those behind each decision.")
    ] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print comma-separated values.")] = False,
    recover: Annotated[
        Path | None, typer.Option(help="Copy what can be read of a damaged log into this new file.")
    ] = None,
) -> None:
    """Show the contents of a run log; without options, its manifest."""
    if recover is not None:
        for line in _recovered(file, recover):
            say(line)
        return
    flags = {"calls": calls, "decisions": decisions, "actions": actions, "events": events, "usage": usage}
    sections = [name for name, is_wanted in flags.items() if is_wanted]
    if full and csv:
        raise ConfigError("--full: comma-separated values are never shortened; leave out --full or --csv")
    if full and not (calls or decisions):
        sections.append("decisions")
    for text in tables(file, sections, agent, csv=csv, full=full):
        say(text)
    say(not_checked(file), err=True)


def tables(file: Path, sections: Sequence[str], agent: int | None, *, csv: bool, full: bool = False) -> Iterator[str]:
    """Write tables of a run log as text, a piece at a time, however large they are.

    Args:
        file: The run log.
        sections: Names of tables, or `usage`; empty: the manifest.
        agent: Only rows of this agent.
        csv: Whether to write whole comma-separated values; else calls and decisions become blocks, other rows lines.
        full: Whether blocks show prompts and replies whole.

    Raises:
        ConfigError: If the file is no run log, is damaged, or has no such agent.
    """
    log = RunLog(file, "read")
    try:
        if agent is not None and agent not in (agents := log.agents()):
            there_are = f"those from {agents[0]} to {agents[-1]}" if agents else "none"
            raise ConfigError(f"{str(file)!r} has no rows of agent {agent}; its agents are {there_are}")
        if not sections:
            yield "\n".join(printable(f"{name}: {value}").replace("\n", "\\n") for name, value in log.manifest.items())
        for name in sections:
            if name == "usage":
                names: list[str] = ["model", *_USAGE_COLUMNS]
                rows: Iterator[Sequence[Any]] = iter(log.usage(agent).itertuples(index=False, name=None))
            else:
                names, rows = columns()[name], log.rows(name, agent)
            if csv:
                yield from _as_csv(names, rows)
            elif name in _BLOCKS:
                yield from _in_blocks(log, name, rows, full=full)
            else:
                yield from _for_terminal(name, names, rows)
    finally:
        log.close()


def _as_csv(names: Sequence[str], rows: Iterator[Sequence[Any]]) -> Iterator[str]:
    """Write rows as comma-separated values that no spreadsheet takes for formulas."""
    for chunk in chain([[names]], batched(rows, PAGE)):
        lines = io.StringIO()
        writer = csv_module.writer(lines, lineterminator="\n")
        writer.writerows([spreadsheet_cell(value) for value in row] for row in chunk)
        yield lines.getvalue().rstrip("\n")


def _for_terminal(name: str, names: Sequence[str], rows: Iterator[Sequence[Any]]) -> Iterator[str]:
    """Write rows in columns as wide as the first page of them needs."""
    indices = [index for index, column in enumerate(names) if column not in HIDDEN_COLUMNS]
    widths: list[int] = []
    count = 0
    yield name
    for page in batched(rows, PAGE):
        lines = [[_cell(row[index]) for index in indices] for row in page]
        if not widths:
            lines.insert(0, [names[index] for index in indices])
            widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        count += len(page)
        padded = ([cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in lines)
        yield "\n".join("  ".join(line).rstrip() for line in padded)
    yield _count_line(name, count)


def _count_line(name: str, count: int) -> str:
    """Write the number of rows, and why there is none if no language model took part."""
    reason = ": no language model was called" if count == 0 and name in ("calls", "usage") else ""
    return f"({counted(count, 'row')}{reason})"


def _cell(value: Any) -> str:
    """Write a value on one line of a terminal."""
    text = "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
    text = printable(text[: CELL + 1]).replace("\n", "\\n").replace("\t", "\\t")
    return text if len(text) <= CELL else f"{text[: CELL - 1]}…"


Row = Mapping[str, Any]


def _in_blocks(log: RunLog, name: str, rows: Iterator[Sequence[Any]], *, full: bool) -> Iterator[str]:
    """Write each row as a heading with indented lines below it."""
    count = 0
    yield name
    for row in rows:
        count += 1
        lines = _BLOCKS[name](log, dict(zip(columns()[name], row, strict=True)), full)
        yield "\n" + "\n    ".join(printable(line).rstrip() for text in lines for line in text.split("\n"))
    yield f"\n{_count_line(name, count)}"


def _decision_block(log: RunLog, row: Row, full: bool) -> Iterator[str]:
    """Describe a decision: what was decided and why, its outcomes, and, in full, the prompts behind it."""
    label = f", {row['label']}" if row["label"] else ""
    yield f"step {row['time']}, agent {row['agent']}{label}, by {row['by']}"
    if row["kind"] is not None:
        yield f"failed: {row['kind']}: {_excerpt(row['reason'], full)}"
    else:
        yield from _decided(row["decision"], full)
        if row["text"]:
            yield f"reasoning: {_excerpt(row['text'], full)}"
    if row["reading"]:
        yield f"read as: {_excerpt(row['reading'], full)}"
    for outcome in log.rows_of("actions", row["time"], row["agent"]):
        action = dict(zip(columns()["actions"], outcome, strict=True))
        if action["label"] == row["label"]:
            result = _read(action["result"])
            yield f"{'done' if action['ok'] else 'refused'}: {action['action']}: {_excerpt(result, full)}"
    if full:
        keys = set(str(row["keys"]).split())
        for values in log.rows_of("calls", row["time"], row["agent"]):
            call = dict(zip(columns()["calls"], values, strict=True))
            if call["key"] in keys:
                yield from _exchange(call, full)


def _decided(decision: Any, full: bool) -> Iterator[str]:
    match _read(decision, in_natural_order):
        case [list() as actions, answer] if all(isinstance(action, list) and len(action) == 2 for action in actions):
            for action, arguments in actions:
                yield f"{action}({_excerpt(_arguments(arguments), full)})"
            if answer is not None or not actions:
                yield f"answer: {_excerpt(_as_json(answer), full)}"
        case other:
            yield f"decision: {_excerpt(other, full)}"


def _call_block(log: RunLog, row: Row, full: bool) -> Iterator[str]:
    """Describe a request with its reply or error."""
    yield f"step {row['time']}, agent {row['agent']}, {row['purpose']} {row['call']}, {row['model']}"
    yield from _exchange(row, full)
    if row["error_kind"] is None:
        cost = f", ${row['dollars']:.6g}" if isinstance(row["dollars"], float) and row["dollars"] else ""
        seconds = f", {row['latency_s']:.3g} s" if isinstance(row["latency_s"], float) else ""
        yield f"{row['prompt_tokens']} + {row['reply_tokens']} tokens{cost}{seconds}"


def _exchange(call: Row, full: bool) -> Iterator[str]:
    """Write the prompt and the reply of a call; unless in full, only the end of the last message."""
    messages = _read(call["prompt"])
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        yield f"prompt: {_excerpt(messages, full)}"
    else:
        n_before = len(messages) - 1
        if n_before > 0 and not full:
            yield f"({counted(n_before, 'message')} before this one; --full shows them)"
        for message in messages if full else messages[-1:]:
            yield f"[{message.get('role')}]\n{_ending(str(message.get('content')), full)}"
            for tool_call in message.get("tool_calls") or ():
                yield f"    called {_as_json(tool_call)}"
    if full:
        offered, sent = _without_sent(call["parameters"])
        yield f"[offered]\n{offered}"
        if sent:
            yield f"[sent with it]\n{sent}"
        if call["options"] != "{}":
            yield f"[options]\n{call['options']}"
    yield from _reply(call, full)


def _without_sent(parameters: Any) -> tuple[str, str]:
    """Split the parameters of a call into what was offered, and what the transport sent beside the messages."""
    fields = _read(parameters)
    if not isinstance(fields, dict) or "sent" not in fields:
        return str(parameters), ""
    sent = str(fields.pop("sent"))
    return _as_json(fields), sent


def _reply(call: Row, full: bool) -> Iterator[str]:
    """Write the reply of a call, or its error."""
    if call["error_kind"] is not None:
        yield f"error: {call['error_kind']}: {_excerpt(call['error'], full)}"
        return
    reply = _read(call["reply"])
    if not isinstance(reply, dict):
        yield f"reply: {_excerpt(reply, full)}"
        return
    if reply.get("reasoning"):
        yield f"reasoning: {_excerpt(reply['reasoning'], full)}"
    if reply.get("text") or not reply.get("tool_calls"):
        yield f"reply: {_excerpt(reply.get('text'), full)}"
    for tool_call in reply.get("tool_calls") or ():
        match tool_call:
            case [name, arguments, *_]:
                yield f"reply: {name}({_excerpt(_arguments(arguments), full)})"
            case _:
                yield f"reply: {_excerpt(tool_call, full)}"
    if weights := reply.get("probabilities"):
        listed = ", ".join(f"{choice} {figure_text(share)}" for choice, share in weights.items())
        yield f"probabilities: {listed}; off the list {figure_text(reply.get('off_list', 0.0))}"


_BLOCKS: dict[str, Callable[[RunLog, Row, bool], Iterator[str]]] = {
    "calls": _call_block,
    "decisions": _decision_block,
}


def _read(text: Any, read: Callable[[str], Any] = loaded) -> Any:
    """Read JSON that a log holds; anything else, as in a damaged log, is returned unchanged."""
    try:
        return read(text) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        return text


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _arguments(arguments: Any) -> str:
    if not isinstance(arguments, dict):
        return _as_json(arguments)
    return ", ".join(f"{name}={_as_json(value)}" for name, value in arguments.items())


def _excerpt(value: Any, full: bool) -> str:
    text = value if isinstance(value, str) else _as_json(value)
    return text if full else clip(text, EXCERPT)


def _ending(text: str, full: bool) -> str:
    """Cut the beginning of a prompt, as the news is at its end."""
    return text if full or len(text) <= EXCERPT else f"…{text[-EXCERPT:]}"


def _recovered(file: Path, copy: Path) -> Iterator[str]:
    """Copy what can be read of a damaged log into a new file, and write a line about each table.

    Args:
        file: The damaged run log.
        copy: The file to make.

    Raises:
        ConfigError: If the new file exists already or cannot be written, or nothing can be read.
    """
    results = recovery.recover(file, copy)
    for result in results:
        more = "" if result.is_whole else ", and perhaps more"
        yield f"{result.table}: {counted(result.kept, 'row')} kept, {result.lost} lost{more}"
    counts = {result.table: result.kept for result in results}
    if not counts["manifest"]:
        yield "the description of the run is lost: its replies can be inspected, but the run cannot be resumed"
    yield f"recovered into {copy}; the same run with --log {copy} reuses the replies in it, and asks for the rest"
