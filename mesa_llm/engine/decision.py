"""From an observation to a decision: request, tool calls, one repair of a bad reply, or a failure."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, cast

from mesa_llm.canonical import canonical_json
from mesa_llm.config import Reasoning
from mesa_llm.engine.numbering import follow_up, parsing, tool_call
from mesa_llm.engine.presentation import AS_WRITTEN, Presentation, presented
from mesa_llm.engine.reading.aliases import Aliases
from mesa_llm.engine.reading.answers import answer_schema
from mesa_llm.engine.reading.parsing import DECLINED, FILTERED, MAX_TEXT, read, require_ended, thought_in
from mesa_llm.engine.reading.reasoning import CUT_MARK, marked_if_cut, split_reasoning
from mesa_llm.engine.text import ALL_TOKENS, reason_text
from mesa_llm.errors import (
    AccessRefused,
    BudgetExceeded,
    Filtered,
    ParseError,
    Refused,
    ReplayError,
    Stopped,
    ToolBroken,
    ToolError,
    TransportError,
)
from mesa_llm.llm.endings import CUT, UNENDED
from mesa_llm.llm.openai.carried import carried_by
from mesa_llm.llm.protocol import LLM
from mesa_llm.llm.refusals import declines
from mesa_llm.llm.replies import as_reply
from mesa_llm.llm.schema.flat import flat_schema, narrow, only_call, only_value, wire_tools
from mesa_llm.llm.schema.grammar import REASONING
from mesa_llm.llm.surrogate.names import PREFIX, is_surrogate
from mesa_llm.prompts import Prompts
from mesa_llm.records import (
    ChatMessage,
    Decision,
    Failure,
    Observation,
    Reply,
    Request,
    Salt,
    ToolCall,
    ToolSpec,
)
from mesa_llm.records.requests import CALLS
from mesa_llm.tools.toolbox import ToolBox

logger = logging.getLogger(__name__)

MAX_TOOL_ROUNDS = 5
"""Maximum number of times a model may call tools before it decides; the request after them offers actions alone."""

MAX_TOOL_RESULT = 4_000
"""Maximum number of characters of a tool's result that a model reads."""

ASKED_AGAIN = "asked again"
"""Beginning of the description of how a reply was read, if the one before it could not be used."""

NOT_ASKED = "not asked"
"""Stands in place of how a reply was read, if no request was sent because only one decision was possible."""

FORCED = "forced"
"""Who has decided where only one decision was possible, and nobody was asked."""

DECLINED_NOTE = "declined"
"""End of the description of how a reply was read, if it cannot be used and refuses the task, in words or by a field."""

UNSPOKEN = "Unspoken"
"""Kind of a `ParseError` for a reply that could be read, but not be said."""

FILTERED_NOTE = "filtered"
"""End of the description of how a reply was read, if a filter of the provider stopped it."""

THINK = "reasoning_question.md"
"""Template of the question to a model that reasons in free text first."""


def always(request: Request) -> bool:
    """Require a request, however many decisions are possible."""
    return True


@dataclass(slots=True)
class Query:
    """Everything needed for one decision: the language model, the observation, the tools and the request."""

    llm: LLM
    """The language model that decides."""

    seen: Observation
    """What the agent observes."""

    box: ToolBox
    """Tools and actions it may use now."""

    request: Request
    """The first request; follow-ups extend it."""

    parser: LLM | None = None
    """Second model that rewrites a faulty reply in the required form; None: the first model is asked again."""

    parser_name: str = ""
    """Name of the second model, part of the keys of its replies."""

    reasoning: Reasoning = "none"
    """Whether, and how, the model reasons before it decides."""

    question: str = THINK
    """Template of the question to a model that reasons in free text first."""

    tracebacks: set[tuple[str, type[Exception]]] = field(default_factory=set)
    """Names of tools, with the types of their exceptions for which the run has shown a traceback."""

    requires_request: Callable[[Request], bool] = always
    """Whether a request is made even if only one decision is possible, as one whose reply was recorded and paid is."""

    presentation: Presentation = AS_WRITTEN
    """Order in which the language model reads tools and options."""

    aliases: Aliases | None = None
    """Names that it reads in place of the agents' own; None: their own."""

    drops_spent_tools: bool = True
    """Whether tools that have nothing more to say are not offered again; False for recordings from before."""

    forced_by: str = FORCED
    """Who decides if only one decision is possible; the language model's name for recordings from before."""

    keys: list[str] = field(default_factory=list)
    """Keys of the requests made so far."""

    is_asked_again: bool = False
    """Whether a reply could not be used, and another was asked for."""

    probabilities: Mapping[str, float] = field(default_factory=dict[str, float])
    """Probabilities of the request's choices, from the last reply; empty unless they were asked for."""

    takes_unended: bool = False
    """Whether a reply counts however it ended, as in recordings from before 1.1."""

    declined: str = ""
    """`DECLINED_NOTE` or `FILTERED_NOTE` if the last reply that could not be used was declined; else empty."""

    by: str = ""
    """Surrogate that the last reply is from; empty: it is from the model of the request, or one it has asked."""

    async def ask(self, request: Request, llm: LLM | None = None) -> Reply:
        """Send a request, and return what was said; its key is stored after that, as computing it takes a while."""
        request = self.prepared(request)
        try:
            reply = split_reasoning(await (llm or self.llm).reply(request))
            if self.aliases is not None:
                reply = self.aliases.reply(reply)
            self.probabilities = reply.probabilities
            self.by = reply.model if request.model.startswith(PREFIX) and is_surrogate(reply.model) else ""
            return reply
        finally:
            self.keys.append(request.key)

    def prepared(self, request: Request) -> Request:
        """Return a request as the language model reads it: in the presentation's order, and with its names."""
        draws = self.seen.option_order == "drawn" and request.messages != ()  # the random baseline reads none
        if draws or self.presentation is not AS_WRITTEN:
            request = presented(request, self.presentation, is_drawn=draws)
        return request if self.aliases is None else self.aliases.request(request)

    def failure(self, reason: str, kind: str) -> Failure:
        """Return the failure of this decision."""
        reading = self.described(self.declined)
        return Failure(self.request.salt.agent, reason, kind, self.request.model, tuple(self.keys), reading=reading)

    def described(self, reading: str) -> str:
        """Return how a reply was read, after `ASKED_AGAIN` if it was the second one."""
        return "; ".join(filter(None, (ASKED_AGAIN if self.is_asked_again else "", reading)))


async def decide(query: Query) -> Decision | Failure:
    """Ask until there is a decision, running the tools that are called and having a faulty reply repaired once.

    Nothing is asked where one decision is all that is possible.

    Returns:
        The decision, or a failure with its reason if no usable reply came.
    """
    if (only := _only_decision(query)) is not None:
        return only
    request = query.request
    if query.reasoning == "inline":
        request = _with_reasoning(request)
    thought, rounds = "", 0
    partial: Decision | None = None
    try:
        if query.reasoning == "first":
            request, reply = await _think(query)
            thought = reply.text or reply.reasoning
            if query.parser is not None and thought:
                return _with_origin(query, await _put_into_form(query, request, thought), thought)
        while True:
            reply = await query.ask(request)
            try:
                decision = read(reply, query.seen, query.box, query.reasoning, takes_unended=query.takes_unended)
                decision = _as_spoken(decision, query)
            except ParseError as error:
                query.declined = _declined(error, reply)
                partial = _fuller(cast("Decision | None", error.partial), partial)
                is_last = query.is_asked_again or error.kind in (FILTERED, DECLINED)
                if is_last and partial is not None:
                    return _with_origin(query, partial, thought)
                if is_last:
                    return query.failure(_reason(error, reply), error.kind)
                query.is_asked_again = True
                is_unended = reply.finish in UNENDED and not query.takes_unended
                if query.parser is None or is_unended or error.kind == UNSPOKEN:
                    request = _repair(request, reply, _reason(error, reply), query)
                    continue
                decision = await _put_into_form(query, request, reply.text or _calls_as_text(reply))
                thought = "\n".join(filter(None, (thought, thought_in(reply, query.box, query.reasoning))))
            if isinstance(decision, Decision):
                return _with_origin(query, decision, thought)
            if rounds == MAX_TOOL_ROUNDS:
                return query.failure(f"called tools {rounds + 1} times without deciding", "Undecided")
            rounds += 1
            if query.reasoning == "inline":
                reasons = thought_in(reply, query.box, query.reasoning)
                thought = "\n".join(filter(None, (thought, reasons, *map(str, decision))))
            request = await _answer_tools(request, reply, decision, query)
            if any(query.box[call.name].tool.shows_more for call in decision):
                query = replace(query, seen=replace(query.seen, options={}))
                request = replace(request, options={})
            if query.drops_spent_tools:
                request = _without_spent_tools(request, decision, query, is_last=rounds == MAX_TOOL_ROUNDS)
    except ParseError as error:
        query.declined = _declined(error) or query.declined
        return query.failure(str(error), error.kind) if partial is None else _with_origin(query, partial, thought)
    except (TransportError, ToolBroken) as error:
        if partial is not None:
            return _with_origin(query, partial, thought)
        return query.failure(str(error), type(error).__name__)


def _as_spoken(decided: Decision | tuple[ToolCall, ...], query: Query) -> Decision | tuple[ToolCall, ...]:
    """Return a decision with what it says as it is said, where an observation has rules for that.

    Raises:
        ParseError: If it cannot be said.
    """
    speech = query.seen.speech
    if speech is None or not isinstance(decided, Decision):
        return decided
    return speech.read(decided, "\n".join(message.content for message in query.request.messages))


def _fuller(later: Decision | None, earlier: Decision | None) -> Decision | None:
    """Return the usable part of two replies that holds something, the later one if both do."""
    if later is None or earlier is None:
        return later or earlier
    return later if later.has_answer or later.actions or not (earlier.has_answer or earlier.actions) else earlier


def _only_decision(query: Query) -> Decision | None:
    """Return the one decision that is possible; None if there are several, or if it has to be asked for.

    A tool that reads is a second possibility: its result may offer more.
    """
    request, seen = query.request, query.seen
    if request.max_actions > 1 or (request.schema is None and not request.tools):
        return None
    if request.schema is None:
        reply = as_reply(only) if (only := only_call(request.tools, request.options)) is not None else None
    else:
        reply = _only_answer(request)
    if reply is None or query.requires_request(query.prepared(_first_request(query))):
        return None
    try:
        decision = read(reply, seen, query.box)
    except ParseError:  # a check of the answer's type that its schema does not show
        return None
    if not isinstance(decision, Decision):
        return None
    agent = request.salt.agent
    return replace(decision, agent=agent, text="", by=query.forced_by, label=seen.label, reading=NOT_ASKED)


def _only_answer(request: Request) -> Reply | None:
    """Return the one answer that the schema of a request allows; None if there are several."""
    schema = request.schema or {}
    parts: Mapping[str, Mapping[str, Any]] = schema.get("properties", {})
    if request.tools or not all(_may_be_one(name, part, request.options) for name, part in parts.items()):
        return None
    try:
        flat = narrow(flat_schema(schema), request.options)
    except Refused:
        return None
    values = only_value(flat) if flat is not None else ()
    return as_reply(values[0]) if values else None


def _may_be_one(name: str, schema: Mapping[str, Any], options: Mapping[str, Sequence[Any]]) -> bool:
    """Check without flattening whether a property may have one value only; nearly all plainly have several."""
    if name in options:
        return len(options[name]) == 1
    if "enum" in schema:
        return len(schema["enum"]) == 1
    if schema.get("type") == "integer":
        return "minimum" in schema and schema["minimum"] == schema.get("maximum")
    return "const" in schema or schema.get("type") not in ("string", "number", "boolean", "array")


def _first_request(query: Query) -> Request:
    """Return the request that a decision begins with."""
    match query.reasoning:
        case "inline":
            return _with_reasoning(query.request)
        case "first":
            return _thinking(query)[0]
        case _:
            return query.request


def _with_origin(query: Query, decided: Decision | tuple[ToolCall, ...], thought: str) -> Decision:
    """Add to a decision who made it, the keys of its replies, and the reasoning before it.

    Raises:
        ParseError: If the second model called tools, as nothing would answer them.
    """
    if not isinstance(decided, Decision):
        raise ParseError(reason_text("tools_in_form"))
    request = query.request
    return replace(
        decided,
        agent=request.salt.agent,
        text="\n".join(filter(None, (thought, decided.text)))[:MAX_TEXT],
        by=query.by or request.model,
        keys=tuple(query.keys),
        label=query.seen.label,
        reading=query.described(decided.reading),
        probabilities=query.probabilities,
    )


def _declined(error: ParseError, reply: Reply | None = None) -> str:
    """Return who declined a reply that cannot be used, as a note on how it was read; empty if nobody did."""
    if error.kind == FILTERED:
        return FILTERED_NOTE
    is_declined = error.kind == DECLINED or (reply is not None and declines(reply.text))
    return DECLINED_NOTE if is_declined else ""


def _reason(error: ParseError, reply: Reply) -> str:
    """Explain why a reply cannot be used and, if it was cut off, what to do about it."""
    if reply.finish != CUT:
        return str(error)
    return reason_text("cut_reply", tokens=reply.reply_tokens or ALL_TOKENS, error=error)


def is_filtered(failure: Failure) -> bool:
    """Check whether a filter of the provider stopped a decision: at the prompt, or in the reply."""
    return failure.kind == Filtered.__name__ or failure.reading.endswith(FILTERED_NOTE)


def is_declined(decision: Decision | Failure) -> bool:
    """Check whether a decision was declined.

    The language model declines in place of it or in a text that it decided on, or a filter of its provider stops it. An
    error of the request (a setting, a prompt that is too long, an account without money) is nobody's refusal.
    """
    if isinstance(decision, Failure):
        return is_filtered(decision) or decision.reading.endswith(DECLINED_NOTE)
    values = [decision.answer, *[value for call in decision.actions for value in call.arguments.values()]]
    texts = [value for value in values if isinstance(value, str)]
    return bool(texts) and any(map(declines, texts))


# -- reasoning


async def _think(query: Query) -> tuple[Request, Reply]:
    """Let the model reason in free text first.

    Returns:
        The request for the typed decision, which continues the conversation; and the reply with the reasoning.
    """
    thinking, question = _thinking(query)
    reply = await query.ask(thinking)
    if reply.finish in UNENDED and not query.takes_unended:
        require_ended(reply)
    request, earlier = query.request, query.request.messages[:-1]
    thought = (reply.text or reply.reasoning)[:MAX_TEXT]
    decide_now = ChatMessage("user", request.prompts.fill("reasoning_decide.md"))
    continuation = (ChatMessage("assistant", thought, carried=_beside(reply)), decide_now) if thought else ()
    salt = follow_up(request.salt)
    last = question if thought else request.messages[-1]
    return replace(request, messages=(*earlier, last, *continuation), salt=salt), reply


def _thinking(query: Query) -> tuple[Request, ChatMessage]:
    """Return the request for reasoning in free text, and its last message."""
    request = query.request
    prompts, answer = request.prompts, query.seen.answer
    text = prompts.fill(
        "reasoning_first.md",
        question=prompts.fill(query.question),
        form="" if answer in (None, str) else canonical_json(answer_schema(answer)),
        actions=[spec for spec in request.tools if spec.is_action],
    )
    *earlier, last = request.messages
    question = replace(last, content=f"{last.content}\n\n{text}")
    return replace(request, messages=(*earlier, question), tools=(), schema=None, options={}, choices=()), question


def _with_reasoning(request: Request) -> Request:
    """Ask for the reasoning as the first field of the arguments or the answer."""
    note = request.prompts.fill("reasoning_field.md")
    tools = tuple(reasoned_tool(spec, note) if spec.is_action else spec for spec in request.tools)
    schema = request.schema
    if schema is None and not any(spec.is_action for spec in tools):  # an answer in free text
        schema = answer_schema(str)
    return replace(request, tools=tools, schema=None if schema is None else _reasoned(schema, note))


@lru_cache(maxsize=1024)
def reasoned_tool(spec: ToolSpec, note: str) -> ToolSpec:
    """Return a tool with the reasoning as its first argument; a tool that already has such an argument is unchanged.

    Args:
        spec: The tool.
        note: Description of that argument.
    """
    return ToolSpec(spec.name, spec.description, _reasoned(spec.parameters, note), spec.is_action)


def _reasoned(schema: Mapping[str, Any], note: str) -> dict[str, Any]:
    properties = schema.get("properties", {})
    if REASONING in properties:
        return dict(schema)
    required = [REASONING, *schema.get("required", ())]
    return {
        **schema,
        "properties": {REASONING: {"type": "string", "description": note}, **properties},
        "required": required,
    }


# -- follow-ups


def _next(request: Request, *messages: ChatMessage) -> Request:
    """Create the follow-up of a request, with further messages."""
    return replace(request, messages=(*request.messages, *messages), salt=follow_up(request.salt))


def _assistant_message(reply: Reply) -> ChatMessage:
    carried = carried_by(reply.carried, reply.reasoning) if reply.carried else {}
    calls = tuple(map(_without_cut_reasoning, _with_ids(reply.tool_calls)))
    return ChatMessage("assistant", reply.text[:MAX_TEXT], calls, carried=carried)


def _without_cut_reasoning(call: ToolCall) -> ToolCall:
    """Leave out of a call that goes into the next prompt a reasoning that was cut, which the model would go on with."""
    thought = call.arguments.get(REASONING)
    if not isinstance(thought, str) or not marked_if_cut(thought).endswith(CUT_MARK):
        return call
    return replace(call, arguments={name: value for name, value in call.arguments.items() if name != REASONING})


def _beside(reply: Reply) -> dict[str, Any]:
    """Return what a message brings back that repeats the text of a reply, and neither its calls nor its parts."""
    carried = carried_by(reply.carried, reply.reasoning) if reply.carried else {}
    return {name: value for name, value in carried.items() if name not in ("content", CALLS)}


def _with_ids(calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    """Return the calls with an id for each, as endpoints require one."""
    return tuple(call if call.call_id else replace(call, call_id=f"call_{n}") for n, call in enumerate(calls))


async def _answer_tools(request: Request, reply: Reply, calls: Sequence[ToolCall], query: Query) -> Request:
    """Run the tools a model called, with their checked arguments, and append their results after its message."""
    answers: list[ChatMessage] = []
    for number, call in enumerate(_with_ids(reply.tool_calls or tuple(calls))):
        text = request.prompts.fill("tool_not_run.md")
        if number < len(calls):  # in the order of the reply's calls
            text = await _result(calls[number], query, request.salt, number)
        answers.append(ChatMessage("tool", _shortened(text, request.prompts), call_id=call.call_id))
    if not reply.tool_calls:
        results = "\n".join(f"{call.name}: {answer.content}" for call, answer in zip(calls, answers, strict=True))
        return _next(request, _assistant_message(reply), ChatMessage("user", results))
    return _next(request, _assistant_message(reply), *answers)


def _without_spent_tools(request: Request, calls: Sequence[ToolCall], query: Query, *, is_last: bool) -> Request:
    """Return a request without the tools that have nothing more to say, so that a model cannot read the same for ever.

    Those are the tools without parameters that were called, unless their results may differ: tools outside the program,
    and those that ask somebody. The last request offers actions alone.

    Args:
        request: The next request.
        calls: What was called in the round before it.
        query: The decision, with its tools.
        is_last: Whether the model has to decide now.
    """
    tools = {call.name: query.box[call.name].tool for call in calls}
    spent = {name for name, tool in tools.items() if not (tool.is_outside or tool.is_async)}
    left = tuple(
        spec
        for spec in request.tools
        if spec.is_action or not (is_last or (spec.name in spent and not spec.parameters.get("properties")))
    )
    can_decide = left or query.seen.answer is not None
    return replace(request, tools=left) if can_decide and len(left) < len(request.tools) else request


def _shortened(text: str, prompts: Prompts) -> str:
    """Cut a tool's result to `MAX_TOOL_RESULT` characters, and mark the cut."""
    if len(text) <= MAX_TOOL_RESULT:
        return text
    return prompts.fill("tool_result_cut.md", text=text[:MAX_TOOL_RESULT], characters=f"{len(text):,}")


async def _result(call: ToolCall, query: Query, salt: Salt, number: int) -> str:
    """Run a tool, and return its result as the model reads it.

    Args:
        call: The call, checked.
        query: The decision, with its tools.
        salt: Salt of the request whose reply contains the call.
        number: Index of the call in that reply.
    """
    tool = query.box[call.name].tool
    if tool.is_outside:
        return await tool.function(call.arguments, tool_call(salt, number))
    try:
        result = query.box.run(call)
        if tool.is_async:
            result = await result
        return result if isinstance(result, str) else canonical_json(result)
    except ToolError as error:
        return query.request.prompts.fill("tool_error.md", reason=error)
    except (TransportError, BudgetExceeded, AccessRefused, ReplayError, Stopped):  # of what an async tool has asked
        raise
    except Exception as error:  # a tool is user code: its error ends one agent's decision, not the step
        is_first = (fault := (call.name, type(error))) not in query.tracebacks
        query.tracebacks.add(fault)
        logger.error("tool %s raised %s: %s", call.name, type(error).__name__, error, exc_info=is_first)
        raise ToolBroken(f"tool {call.name} raised {type(error).__name__}: {str(error)[:300]}") from error


def _repair(request: Request, reply: Reply, reason: str, query: Query) -> Request:
    """Return the request that asks again and explains what was wrong."""
    message = ChatMessage("assistant", reply.text[:2000] or _calls_as_text(reply), carried=_beside(reply))
    text = request.prompts.fill("reply_repair.md", reason=reason, form=_form(request, query.seen))
    return _next(request, message, ChatMessage("user", text))


def _calls_as_text(reply: Reply) -> str:
    return canonical_json([[call.name, call.arguments] for call in reply.tool_calls])[:2000]


async def _put_into_form(query: Query, request: Request, text: str) -> Decision | tuple[ToolCall, ...]:
    """Have the second model rewrite what the first one wrote in the required form (two-step parsing).

    Its request takes the number of the request it follows.

    Raises:
        ParseError: If the second model fails too.
    """
    form = _form(query.request, query.seen)
    question = request.prompts.fill("reply_into_form.md", text=text[:8000], form=form)
    messages = (ChatMessage("user", question),)
    form_request = replace(
        query.request, model=query.parser_name, messages=messages, salt=parsing(request.salt), adapter=None, choices=()
    )
    return read(await query.ask(form_request, query.parser), query.seen, query.box)


def _form(request: Request, seen: Observation) -> str:
    """Describe the form that a reply must have."""
    if seen.answer is str and seen.speech is not None and request.schema is None:
        return request.prompts.fill("reply_form_speech.md")
    if seen.answer is not None:
        schema = request.schema or answer_schema(seen.answer)
        return request.prompts.fill("reply_form_answer.md", schema=canonical_json(schema))
    functions = [tool["function"] for tool in wire_tools(request.tools, request.options)]
    offers = [{"action": tool["name"], "arguments": tool["parameters"].get("properties", {})} for tool in functions]
    actions = canonical_json(offers)
    return request.prompts.fill("reply_form_action.md", actions=actions, max_calls=request.max_calls)
