"""Why a reply cannot be used, as its language model reads it before it tries again."""

from __future__ import annotations

from mesa_llm.text import sentences

ALL_TOKENS = "all allowed"
"""Number of tokens of a reply whose tokens were not counted."""

WHOLE_ANSWER = "the answer"
"""Name of an answer, for faults of no single field."""

NOTHING = "nothing at the moment"
"""List of what is possible where nothing is."""

REASONS = {
    "cut_reply": (
        "the reply was cut after {tokens} tokens (finish=length); raise reply_tokens= (--reply-tokens), or max_tokens "
        "in the agent's settings. {error}"
    ),
    "late_server": "gave no answer within {timeout_s:g} s.",
    "mute_server": "gave no answer: {error}",
    "tools_in_form": "the second model called tools instead of putting the reply into form.",
    "only_reasoning": "the reply ends within its reasoning, before anything was said.",
    "too_long": "the reply is longer than {maximum} characters.",
    "cut_answer": "the reply was cut within its answer.",
    "cut_call": "the reply was cut, and its call may not be whole.",
    "filtered": (
        "a content filter of the provider stopped the reply (finish={finish}). It was not asked again, as the prompt "
        "is the same; change what agents read, or the filter's settings at the provider"
    ),
    "declined": "the language model declined to reply (finish={finish}): {text!r}",
    "broken_off": "the endpoint broke off in the middle of the reply (finish={finish}).",
    "malformed_call": "the call of a tool could not be read; write it again, as JSON.",
    "cut_after_decision": "the reply goes on after its decision, and was cut before its end.",
    "too_many_actions": "{count} actions were named; at most {maximum} can be done.",
    "not_a_number": "{tool}: {name}: a number is wanted, got {value}.",
    "argument": "{tool}: {name}: got {value!r:.60}.",
    "misfit_arguments": "{tool}: {fault}.",
    "no_answer_wanted": "an action is wanted, not an answer; choose one of: {names}.",
    "no_action_wanted": "an answer is wanted, not an action.",
    "only_reads": "{tool} only reads; an action is wanted.",
    "not_a_call": "an action is a ToolCall, got a {kind}.",
    "not_named": "an action has a name and arguments by name, got {name!r:.80} and {arguments!r:.80}.",
    "not_possible": "{tool}: {name}: {chosen!r} is not possible now; possible: {possible}.",
    "nothing_possible": "{tool}: {name}: {chosen!r} is not possible now; possible: nothing at the moment.",
    "call_for_answer": "an answer is wanted, not a call of {name!r}.",
    "interrupted": "the reply is interrupted by reasoning; write the text in one piece.",
    "unread_text": "the text of the answer cannot be read: {text!r}.",
    "empty": "the reply is empty.",
    "no_action": "the reply names no action.",
    "call_for_text": "a text is wanted, not the call of a tool: {text!r}.",
    "calls_tool": "the reply calls a tool.",
    "cut_object": "the reply ends within an object: {text!r}.",
    "broken_object": "the reply holds an object that is no JSON: {text!r}.",
    "no_tool": "there is no tool {name!r}; choose one of: {known}.",
    "no_tools": "there is no tool {name!r}; choose one of: none can be used now.",
    "call_fault": "{tool}: {fault}.",
    "no_arguments": "the arguments are no JSON object: {text}",
    "several_arguments": "{count} sets of arguments were given, which differ",
    "unclear_call": "it is not clear what is called with what",
    "cut_arguments": "its arguments are cut off",
    "broken_arguments": "its arguments are no JSON: {text!r}",
    "unread_arguments": "its arguments cannot be read: {text!r}",
    "takes": "it takes {names}",
    "takes_nothing": "it takes no arguments",
    "argument_twice": "the argument {name!r} occurs twice, with two values",
    "open_tag": "it is not closed",
    "unread_tags": "its tags cannot be read",
    "open_lines": "it is not clear where its last argument ends",
    "several_calls": "the reply names {count} calls to choose from.",
    "not_decided": "the reply speaks of {tool} without saying clearly that this is the decision.",
    "too_many_names": "the reply names tools more than {maximum} times.",
    "answer_of_other_type": "the answer does not fit: {fault}",
    "answer_not_json": "the answer cannot be written as JSON: {error}",
    "answer_fault": "the answer does not fit: {fault}.",
    "open_answer": "the reply ends within its answer: {text!r}.",
    "broken_answer": "the reply holds an answer that is no JSON: {text!r}.",
    "answer": "the answer does not fit.",
    "no_fields": "the answer does not fit: the object holds none of its fields.",
    "no_answer": "{name}: no answer",
    "no_text": "{value!r} is no text",
    "no_item": "there is no item {names}",
    "more_faults": "; and {count} more",
    "key_twice": "{name} is there twice",
    "several_readings": "{path}: {value} can be read in more than one way",
    "several_options": "{value!r} means more than one option; possible: {possible}",
    "off_options": "{value!r} is not possible; possible: {possible}",
    "no_object": "the answer does not fit: it has to be an object, got {value!r:.80}.",
    "no_json_object": "the answer does not fit: the reply holds no JSON object.",
    "no_json": "the answer does not fit: the reply holds no JSON, got {text!r}.",
    "spoken_of_again": "the answer does not fit: it is given, and then spoken of again.",
    "ambiguous": "the answer does not fit: {text!r} means more than one answer.",
    "ambiguous_choice": "the answer does not fit: {text!r} means more than one answer; possible: {possible}.",
    "off_list": "the answer does not fit: {text!r} holds no possible answer.",
    "off_list_choice": "the answer does not fit: {text!r} holds no possible answer; possible: {possible}.",
    "twice": "the answer does not fit: {name} is there twice.",
    "scale": "the answer does not fit: the reply lists the scale.",
}
"""Refusal → why it is refused."""

reason_text = sentences(REASONS)
