"""Which replies decline, and which are the words of a person who is played."""

import pytest

from mesa_llm.llm.refusals import declines, is_assistant_greeting

REFUSALS = [
    "I'm sorry, but I can't assist with that.",
    "I\u2019m sorry, but I can\u2019t assist with that request.",
    "I apologize, but I cannot assist you with this.",
    "Sorry, I can't help with that.",
    "I am unable to fulfill this request.",
    "I can't comply with that request because it is harmful.",
    "As an AI language model, I do not have personal opinions, but many people say …",
    "Well, as a language model I have no vote.",
    "I'm just an AI assistant and don't form views.",
    "I don't have personal feelings, but I can describe both sides.",
    "I cannot provide such content, as it goes against my guidelines.",
    "I'm not able to generate that kind of content.",
    '"I cannot role-play as a real person."',
    "I won't engage in this conversation.",
    "Unfortunately I can't answer that.",
]

SPEECH = [
    "I'm sorry, but I can't help you move on Saturday; my back hurts.",
    "I can't do that. You know how much the flat means to me, and so does the rent.",
    "I cannot provide you with a discount, the margin is too thin.",
    "I can't continue like this, Ben. We need to talk.",
    "I won't pay fifteen dollars for a lamp!",
    "We are unable to agree on the price.",
    "I am an AI researcher from Leeds, and I love hiking.",
    "AI will take our jobs, and I am sorry to say so.",
    "I don't have feelings for her any more.",
    "It is against our policy to open on Sundays.",
    "I'm afraid I can't tell you that, it would spoil the surprise for your sister.",
    "Why can't the council assist with housing? I do not have an answer.",
    "The bot said: nothing of use, and so I asked my neighbour.",
    "",
]


@pytest.mark.parametrize("text", REFUSALS)
def test_refusals_are_told(text: str) -> None:
    assert declines(text)


@pytest.mark.parametrize("text", SPEECH)
def test_people_who_say_no_decline_nothing(text: str) -> None:
    assert not declines(text)


@pytest.mark.parametrize(
    "text",
    ["Hello! How can I assist you today?", "Hi there, how may I help you?", "I'm here to help! What can I do for you?"],
)
def test_an_assistant_that_waits_for_its_task_is_told(text: str) -> None:
    assert is_assistant_greeting(text)


@pytest.mark.parametrize(
    "text", ["Hello, I'm Ann, and I love the sea.", "Hi! I think the park is great.", "How can I stop worrying?", ""]
)
def test_people_greet_too(text: str) -> None:
    assert not is_assistant_greeting(text)
