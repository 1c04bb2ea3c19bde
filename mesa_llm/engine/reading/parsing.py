"""From a reply to a checked decision, or to an answer of the requested type: the one check for all deciders.

Replies are untrusted: they are parsed within bounds and checked by pydantic, and can only reach functions whose names
and arguments are known.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from mesa_llm.canonical import member_value
from mesa_llm.config import Reasoning
from mesa_llm.engine.reading.answers import Answer, bare_schema, checked_answer, object_answer
from mesa_llm.engine.reading.coercion import THOUGHT_KEYS, Coercion, CoercionError, letters
from mesa_llm.engine.reading.prose import prose_answer
from mesa_llm.engine.reading.reasoning import marked_if_cut, split, split_reasoning
from mesa_llm.engine.reading.tool_calls import MAX_CALLS, Call, Offers, calls_in, native, offers_of, require_usable
from mesa_llm.engine.text import reason_text
from mesa_llm.errors import ParseError, ToolError
from mesa_llm.llm import endings
from mesa_llm.llm.endings import UNENDED
from mesa_llm.llm.lenient_json import Value, read_value, values_in
from mesa_llm.llm.schema.grammar import REASONING
from mesa_llm.records import Decision, Observation, Reply, ToolCall, options_for
from mesa_llm.tools.toolbox import ToolBox

MAX_TEXT = 100_000
"""Maximum number of characters of a reply that are searched for JSON."""

FILTERED, DECLINED = "Filtered", "Declined"
"""Kinds of a `ParseError`: the provider's filter stopped the reply, or the language model declined to give one."""

MAX_READING = 500
"""Maximum number of characters of the description of how a reply was read."""


def read(
    reply: Reply, seen: Observation, box: ToolBox, reasoning: Reasoning = "none", *, takes_unended: bool = False
) -> Decision | tuple[ToolCall, ...]:
    """Read a reply as a decision, or as tool calls to be answered first.

    Only what was said counts, never a thought, and only of a reply that ended by itself: what was cut, filtered or
    broken off is no decision, unless an object in its text is closed and nothing follows it. Calls and answers are
    found in every common notation, and repaired only where nothing is lost and there is one way to do it;
    `Decision.reading` says how a reply was read.

    Args:
        reply: The reply.
        seen: What the agent observed.
        box: Tools and actions it may use.
        reasoning: Whether, and how, the model reasons before it decides.
        takes_unended: Whether it counts what a reply holds however that ended, as for recordings from before 1.1.

    Raises:
        ParseError: If it is neither; the text explains why. Its kind is `Filtered` or `Declined` if the provider's
            filter or the language model did not let it come to a decision.
    """
    reply = split_reasoning(reply)
    if not takes_unended:
        if reply.finish in UNENDED:
            require_ended(reply)
        if not reply.text and not reply.tool_calls and reply.reasoning:
            return _read_in_reasoning(reply, seen, box, reasoning)
    return _read(reply, seen, box, reasoning, is_strict=not takes_unended)


def _read(
    reply: Reply, seen: Observation, box: ToolBox, reasoning: Reasoning, *, is_strict: bool
) -> Decision | tuple[ToolCall, ...]:
    """Read a reply, as `read` does, whatever it says about its end but that it was cut."""
    if reply.state == "open" and not (reply.tool_calls and reply.finish != "length"):
        raise ParseError(reason_text("only_reasoning"))
    if seen.answer is not None:
        return _read_reply_to_question(reply, seen, box, reasoning, is_strict)
    if len(reply.tool_calls) == 1 and reasoning != "inline":
        decision = _decided_to_the_letter(reply, reply.tool_calls[0], seen, box)
        if decision is not None:
            return decision
    offers = offers_of(box.specs)
    calls = _calls_of(reply, offers)
    if not calls:
        raise ParseError(reason_text("no_action" if reply.text.strip() else "empty"))
    _require_end(reply, calls[-1].end)
    calls, thought = _without_reasoning(calls, box) if reasoning == "inline" else (calls, "")
    if reasoning == "inline" and not thought and not reply.tool_calls:
        thought = _reasoning_beside(_speech(reply))
    return _decision_of(calls, reply, seen, box, thought)


def require_ended(reply: Reply) -> None:
    """Check that nothing but its length ended a reply, and that no call of it was cut.

    A call that an endpoint recognised in a reply that was cut is none, though its arguments be JSON: endpoints close
    what was left open, and nobody knows what would have followed.

    Raises:
        ParseError: If it did not end by itself.
    """
    match reply.finish:
        case endings.FILTERED:
            raise ParseError(reason_text("filtered", finish=reply.finish), kind=FILTERED)
        case endings.DECLINED:
            raise ParseError(reason_text("declined", finish=reply.finish, text=reply.text[:200]), kind=DECLINED)
        case endings.INTERRUPTED:
            raise ParseError(reason_text("broken_off", finish=reply.finish))
        case endings.MALFORMED if not reply.tool_calls and not reply.text:
            raise ParseError(reason_text("malformed_call"))
        case endings.CUT if reply.tool_calls:
            raise ParseError(reason_text("cut_call"))
        case _:
            return


def _read_in_reasoning(
    reply: Reply, seen: Observation, box: ToolBox, reasoning: Reasoning
) -> Decision | tuple[ToolCall, ...]:
    """Read a reply whose text a server has put where its reasoning belongs, if it is plainly no thought.

    Raises:
        ParseError: If it is a thought, or was cut.
    """
    thought, speech, state = split(reply.reasoning)
    said = speech.strip()
    is_said = said.startswith(("{", "[", "```")) or _CALL_MARKUP.match(said) is not None
    if reply.finish in UNENDED or state != "whole" or not is_said:
        raise ParseError(reason_text("only_reasoning" if reply.finish in UNENDED else "empty"))
    try:
        is_said = bool(read_value(said).value) or seen.answer is None
    except ValueError:
        is_said = _CALL_MARKUP.match(said) is not None
    if not is_said or (seen.answer is str and _text_fields(said, reasoning) is None):
        raise ParseError(reason_text("empty"))
    decided = _read(replace(reply, text=said, reasoning=thought), seen, box, reasoning, is_strict=True)
    if not isinstance(decided, Decision):
        return decided
    return replace(decided, reading=_reading(decided.reading, ["found in the field of reasoning"]))


def _decided_to_the_letter(reply: Reply, call: ToolCall, seen: Observation, box: ToolBox) -> Decision | None:
    """Read a call that needs no repair, as nearly all do; None if there is anything to it."""
    if not box.is_action(call.name):
        return None
    try:
        checked = _check_call(call, seen.options, box)
    except ParseError:
        return None
    arguments = checked.arguments
    for name, value in call.arguments.items():
        if type(value) is not type(arguments.get(name)):
            return None
    text = reply.reasoning
    if reply.text:
        text = f"{text}\n{reply.text}" if text else reply.text
    return Decision(0, (ToolCall(checked.name, arguments),), text=text[:MAX_TEXT], reading="tool call")


def _calls_of(reply: Reply, offers: Offers) -> list[Call]:
    """Return the calls of a reply: those that the endpoint recognised, else those in its text.

    Raises:
        ParseError: As `calls_in` does.
    """
    if reply.tool_calls:
        return [native(call.name, call.arguments, offers) for call in reply.tool_calls[:MAX_CALLS]]
    return calls_in(_speech(reply), offers)


def _speech(reply: Reply) -> str:
    """Return the text of a reply without its reasoning.

    Raises:
        ParseError: If it is longer than what is searched.
    """
    if len(reply.text) > MAX_TEXT:
        raise ParseError(reason_text("too_long", maximum=MAX_TEXT))
    return reply.text


def _require_end(reply: Reply, end: int) -> None:
    """Check that a reply that was cut off had said all that matters.

    Raises:
        ParseError: If it went on after what was decided, so that nobody knows what would have come.
    """
    if reply.finish != "length" or reply.tool_calls:
        return
    if end == len(reply.text) and not reply.text.rstrip().endswith(_CLOSING):
        raise ParseError(reason_text("cut_answer"))
    if re.search(r"\w", _MARKUP.sub("", reply.text[end:])):
        raise ParseError(reason_text("cut_after_decision"))


_CLOSING = ("}", "]", ")", ">", "`")
"""Ends of an answer that cannot go on."""

_MARKUP = re.compile(r"<[^<>]{0,80}>|```\w*")


def _decision_of(
    calls: Sequence[Call], reply: Reply, seen: Observation, box: ToolBox, thought: str
) -> Decision | tuple[ToolCall, ...]:
    """Check calls, and return the decision of the actions among them; without any, the calls of tools.

    Raises:
        ParseError: If one of them does not fit.
    """
    are_tools = not any(box.is_action(call.name) or not call.name for call in calls)
    ids = [call.call_id for call in reply.tool_calls] if reply.tool_calls else [""] * len(calls)
    if are_tools:
        return tuple(_checked_call(call, seen, box, call_id)[0] for call, call_id in zip(calls, ids, strict=False))
    checked: list[ToolCall] = []
    repairs: list[str] = []
    thoughts = [reply.reasoning, thought]
    for call in calls:
        if call.name and not box.is_action(call.name):
            continue
        one, own_repairs, own_thoughts = _checked_call(call, seen, box)
        if len(calls) > seen.max_actions and any(one == other for other in checked):
            repairs.append("the same call twice")
            continue
        checked.append(one)
        repairs += own_repairs
        thoughts += own_thoughts
    if len(checked) > seen.max_actions:
        raise ParseError(reason_text("too_many_actions", count=len(checked), maximum=seen.max_actions))
    if reply.tool_calls:
        thoughts.append(reply.text)
    text = "\n".join(filter(None, thoughts))[:MAX_TEXT]
    return Decision(0, tuple(checked), text=text, reading=_reading(calls[-1].notation, repairs))


def _checked_call(
    call: Call, seen: Observation, box: ToolBox, call_id: str = ""
) -> tuple[ToolCall, list[str], list[str]]:
    """Check a call, and fit its arguments to what is on offer where they do not fit as they are.

    Returns:
        The call, what was mended, and texts in which the model explained itself among the arguments.

    Raises:
        ParseError: If it does not fit.
    """
    require_usable(call, box)
    repairs = list(call.repairs)
    raw = ToolCall(call.name, call.arguments, call_id)
    options = seen.options if box.is_action(call.name) else {}
    try:
        checked = _check_call(raw, options, box)
    except ParseError as error:
        return _fitted_call(raw, options, box, repairs, error)
    for name, value in call.arguments.items():
        kind = type(checked.arguments.get(name))
        if type(value) is bool and kind in (int, float):
            raise ParseError(reason_text("not_a_number", tool=call.name, name=name, value=value))
        if type(value) is str and kind in _NUMBERS:
            return _fitted_call(
                raw, options, box, repairs, ParseError(reason_text("argument", tool=call.name, name=name, value=value))
            )
    return checked, repairs, []


def _fitted_call(
    raw: ToolCall, options: Mapping[str, tuple[Any, ...]], box: ToolBox, repairs: list[str], error: Exception
) -> tuple[ToolCall, list[str], list[str]]:
    """Fit the arguments of a call to what is on offer.

    Raises:
        ParseError: If they cannot be fitted.
    """
    parameters = box[raw.name].tool.spec.parameters
    fit = Coercion(parameters.get("$defs"))
    try:
        fields = fit.value(dict(raw.arguments), {"type": "object", "properties": {}, **parameters})
        for name, allowed in options_for(raw.name, options).items():
            if name in fields and fields[name] is not None and allowed:
                fields[name] = _fitted_option(fit, fields[name], allowed, name)
        if not fit.repairs and not fit.thoughts:
            raise ParseError(str(error))
        checked = _check_call(ToolCall(raw.name, fields, raw.call_id), options, box)
    except CoercionError as misfit:
        raise ParseError(reason_text("misfit_arguments", tool=raw.name, fault=misfit), kind="OffList") from None
    return checked, repairs + fit.repairs, fit.thoughts


def _fitted_option(fit: Coercion, value: object, allowed: Sequence[Any], name: str) -> Any:
    if isinstance(value, list) and not any(isinstance(member_value(one), list) for one in allowed):
        members = cast("list[Any]", value)
        return [fit.option(member, [*map(member_value, allowed)], name) for member in members]
    return fit.option(value, [*map(member_value, allowed)], name)


_JSON = json.JSONEncoder(ensure_ascii=False)

_NUMBERS = frozenset({int, float, bool})


def _reading(notation: str, repairs: Iterable[str]) -> str:
    """Describe how a reply was read: its notation, and each repair."""
    return "; ".join(dict.fromkeys((notation, *repairs)))[:MAX_READING]


def _reasoning_beside(speech: str) -> str:
    """Return the reasoning that a model wrote beside its action, instead of among its arguments."""
    for value in reversed(_values_of(speech)):
        if isinstance(value.value, dict) and (thought := cast("dict[str, Any]", value.value).get(REASONING)):
            return str(thought)[:MAX_TEXT]
    return ""


def _values_of(speech: str) -> list[Value]:
    """Return the objects and lists of a text; none if it cannot be searched."""
    try:
        return values_in(speech).found
    except ValueError:
        return []


def thought_in(reply: Reply, box: ToolBox, reasoning: Reasoning) -> str:
    """Return the reasoning in a reply that a second model has parsed; all of its prose counts as reasoning."""
    reply = split_reasoning(reply)
    thought = ""
    if reasoning == "inline":
        offers = offers_of(box.specs)
        try:
            calls = _calls_of(reply, offers)
            thought = _without_reasoning(calls, box)[1]
        except ParseError:
            calls = []
        thought = thought or _reasoning_beside(reply.text)
        if not thought and not calls and not _values_of(reply.text):
            thought = reply.text[:MAX_TEXT].strip()
    return "\n".join(filter(None, (reply.reasoning, thought)))


def check_decision(decision: Decision, seen: Observation, box: ToolBox) -> Decision:
    """Check a decision against its observation: the one check for all deciders.

    Whether it comes from a language model, a rule, a person, the random baseline or an outside controller, a decision
    must name actions on offer, with arguments of the right types and from the lists of options, or hold an answer of
    the requested type.

    Args:
        decision: The decision; without actions and answer it does nothing, which is always allowed.
        seen: What the agent observed.
        box: Tools and actions it could use.

    Returns:
        The decision, with its arguments and answer converted to their types.

    Raises:
        ParseError: If it does not fit; the text explains why.
    """
    if decision.has_answer and seen.answer is None:
        names = ", ".join(spec.name for spec in box.specs if spec.is_action)
        raise ParseError(reason_text("no_answer_wanted", names=names))
    if decision.actions:
        calls, answer = _check_actions(decision.actions, seen, box), None
    elif decision.has_answer:
        calls, answer = (), checked_answer(decision.answer, seen.answer)
    else:
        return decision
    origin = (decision.text, decision.by, decision.keys, decision.label, decision.is_null, decision.reading)
    return Decision(
        decision.agent, calls, answer, *origin, decision.probabilities
    )  # several times faster than replace()


def _check_actions(actions: Sequence[Any], seen: Observation, box: ToolBox) -> tuple[ToolCall, ...]:
    """Check the actions of a decision against its observation, and convert their arguments to their types.

    Raises:
        ParseError: If they do not fit; the text explains why.
    """
    if seen.answer is not None:
        raise ParseError(reason_text("no_action_wanted"))
    if len(actions) > seen.max_actions:
        raise ParseError(reason_text("too_many_actions", count=len(actions), maximum=seen.max_actions))
    calls: list[ToolCall] = []
    for call in actions:
        _require_call(call)
        if call.name in box and not box.is_action(call.name):
            raise ParseError(reason_text("only_reads", tool=call.name))
        calls.append(_check_call(call, seen.options, box))
    return tuple(calls)


def _check_call(call: ToolCall, options: Mapping[str, tuple[Any, ...]], box: ToolBox) -> ToolCall:
    """Check the name and the arguments of a call, and convert these to their types.

    Raises:
        ParseError: If they do not fit.
    """
    try:
        checked = box.check(call)
    except ToolError as error:
        raise ParseError(str(error)) from None
    if options:
        check_options(checked, options)
    return checked


def _require_call(call: Any) -> None:
    """Check that a call is shaped like one of a language model.

    Raises:
        ParseError: If it is not, which only code can cause.
    """
    if not isinstance(call, ToolCall):
        raise ParseError(reason_text("not_a_call", kind=type(call).__name__))
    name, arguments = cast("tuple[Any, Any]", (call.name, call.arguments))
    if type(name) is str and type(arguments) is dict:
        return
    if not isinstance(name, str) or not isinstance(arguments, Mapping):
        raise ParseError(reason_text("not_named", name=name, arguments=arguments))


def check_options(call: ToolCall, options: Mapping[str, tuple[Any, ...]]) -> None:
    """Check that arguments come from the lists of options.

    Raises:
        ParseError: If one does not.
    """
    for name, value in call.arguments.items():
        allowed = options.get(f"{call.name}.{name}", options.get(name))
        if allowed is None or value is None:
            continue
        for element in value if isinstance(value, list) else (value,):  # pyright: ignore[reportUnknownVariableType]
            if element in allowed or (chosen := member_value(element)) in allowed:
                continue
            possible = ", ".join(str(member_value(item)) for item in allowed[:30])
            refusal = "not_possible" if possible else "nothing_possible"
            raise ParseError(
                reason_text(refusal, tool=call.name, name=name, chosen=str(chosen)[:80], possible=possible)
            )


def _without_reasoning(calls: Sequence[Call], box: ToolBox) -> tuple[list[Call], str]:
    """Remove the reasoning from the arguments of calls to tools that have no such argument."""
    remaining: list[Call] = []
    thoughts: list[str] = []
    for call in calls:
        own = box[call.name].tool.spec.parameters.get("properties", {}) if call.name in box else {}
        if REASONING in call.arguments and REASONING not in own:
            thoughts.append(marked_if_cut(str(call.arguments[REASONING])[:MAX_TEXT]))
            arguments = {name: value for name, value in call.arguments.items() if name != REASONING}
            call = call._replace(arguments=arguments)
        remaining.append(call)
    return remaining, "\n".join(thoughts)


# -- answers


def _read_reply_to_question(
    reply: Reply, seen: Observation, box: ToolBox, reasoning: Reasoning, is_strict: bool
) -> Decision | tuple[ToolCall, ...]:
    """Read the reply to a question as an answer, or as calls of tools that read."""
    readers = offers_of(box.readers)
    if reply.tool_calls:
        calls = _calls_of(reply, readers)
        if all(call.name for call in calls):
            return _decision_of(calls, reply, seen, box, "")
        if not reply.text.strip():
            reply = _as_answer(reply, calls, seen.answer)
    speech = _speech(reply)
    if readers.parameters and (calls := _lookups(speech, readers, is_text=seen.answer is str)):
        return _decision_of(calls, reply, seen, box, "")
    kind = seen.answer
    if kind is str:
        answer = _read_text(reply, speech, reasoning, is_strict)
    else:
        answer = _read_typed(reply, speech, kind, reasoning)
    thoughts = (reply.reasoning, *answer.thoughts)
    text = "\n".join(filter(None, thoughts))[:MAX_TEXT]
    is_null = answer.value is None
    return Decision(
        0, answer=answer.value, text=text, is_null=is_null, reading=_reading(answer.notation, answer.repairs)
    )


def _as_answer(reply: Reply, calls: Sequence[Call], kind: object) -> Reply:
    """Return a reply whose answer came as the arguments of a call, with these as its text.

    Raises:
        ParseError: If it calls anything else.
    """
    (call, *others) = calls
    is_text = kind is str and not (set(call.arguments) == {"answer"} and isinstance(call.arguments["answer"], str))
    if others or call.fault or is_text:
        raise ParseError(reason_text("call_for_answer", name=call.written[:80]))
    return replace(reply, text=_JSON.encode(call.arguments), tool_calls=())


def _read_typed(reply: Reply, speech: str, kind: object, reasoning: Reasoning) -> Answer:
    """Read a typed answer; the usable part of a sheet becomes the `partial` decision of the error."""
    try:
        own_name = REASONING if reasoning == "inline" else ""
        answer = object_answer(speech, kind, reasoning=own_name) or prose_answer(speech, kind)
    except ParseError as error:
        if error.partial is not None:
            fields, n_unusable = cast("tuple[dict[str, Any], int]", error.partial)
            repair = f"{n_unusable} of {len(bare_schema(kind)['properties'])} items without a usable answer"
            error.partial = Decision(
                0, answer=fields, text=reply.reasoning, reading=_reading("part of a sheet", [repair])
            )
        raise
    _require_end(reply, answer.end)
    return answer


def _lookups(speech: str, readers: Offers, *, is_text: bool) -> list[Call]:
    """Return the calls of tools that a text consists of, besides a few words before them, unless a text is wanted."""
    try:
        calls = calls_in(speech, readers)
    except ParseError:
        return []
    if not calls or re.search(r"\w", _MARKUP.sub("", speech[calls[-1].end :])):
        return []
    if is_text and calls[0].notation == "Python call" and re.search(r"\w", speech[: calls[0].start]):
        return []
    return calls


def _read_text(reply: Reply, speech: str, reasoning: Reasoning, is_strict: bool) -> Answer:
    """Read a free text, also in the object in which it was asked for.

    Raises:
        ParseError: If it is empty, cut, or interrupted by a thought, so that nobody knows where it begins.
    """
    if reply.state == "interrupted":
        raise ParseError(reason_text("interrupted"))
    thoughts: list[str] = []
    text, notation = speech.strip(), "text"
    if "{" in speech and (fields := _text_fields(speech, reasoning)) is not None:
        text, notation = fields["answer"].strip(), "JSON"
        thoughts = [marked_if_cut(str(value)) for key, value in fields.items() if key != "answer"]
    elif _ANSWER_OBJECT.match(text) is not None:
        raise ParseError(reason_text("unread_text", text=text[:80]))
    if not text:
        raise ParseError(reason_text("empty"))
    if _CALL_MARKUP.match(text) is not None:
        raise ParseError(reason_text("call_for_text", text=text[:80]))
    if is_strict and reply.finish == endings.CUT and notation == "text":
        raise ParseError(reason_text("cut_answer"))
    notes = [] if reply.finish in ("", "stop") else [f"ended by {reply.finish}"]
    return Answer(text[:MAX_TEXT], notation, len(speech), notes, thoughts)


_ANSWER_OBJECT = re.compile(r"(?:```\w*\s*)?\{\s*\"answer\"\s*:")
"""The beginning of the object in which a text may be answered."""

_CALL_MARKUP = re.compile(
    r"<(?:tool_call|tool_calls|function_call|function_calls|function|invoke|tool_use)[>=( ]|"
    r"<[|\uff5c](?:tool|python_tag|python_start|plugin|action_start|START_ACTION|DSML)|\[TOOL_CALLS?\]|\u273fFUNCTION"
)
"""The beginning of a call in the marks that models are trained to write calls in."""


def _text_fields(speech: str, reasoning: Reasoning) -> dict[str, Any] | None:
    """Return the fields of the object `{"answer": text}` that a speech is, maybe with a thought beside it.

    Under inline reasoning the object may follow some words, or hold the thought alone, before the text.
    """
    try:
        values = [read_value(speech)] if reasoning != "inline" else values_in(speech).found
    except ValueError:
        return None
    for value in values[-1:]:
        fields = cast("dict[str, Any]", value.value) if isinstance(value.value, dict) else {}
        rest = {letters(key) for key in fields} - THOUGHT_KEYS
        is_last = not speech[value.end :].strip(" \n`")
        if value.fault or (not is_last and len(values) > 1):
            return None
        if isinstance(fields.get("answer"), str) and rest == {"answer"} and is_last:
            return fields
        if fields and not rest and not speech[: value.start].strip() and not is_last:
            return {**fields, "answer": speech[value.end :]}
    return None


def read_answer(text: str, answer: object) -> Any:
    """Read a typed answer from a text.

    Args:
        text: The reply.
        answer: Type of the answer; `str` takes the text as it is.

    Raises:
        ParseError: If the text holds no answer of this type; the message describes what was found.
    """
    decided = read(Reply(text), Observation(answer=answer), ToolBox.of(object(), 0))
    if not isinstance(decided, Decision):
        raise ParseError(reason_text("calls_tool"))
    return decided.answer
