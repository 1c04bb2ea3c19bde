"""Sentences in which an agent remembers what it did: as its action declares them, or made of its name and docstring.

A memory is read by the one who lived it: "You ordered 14 cases.", and never the syntax of a call. An action without a
sentence of its own has one made of its docstring, "Place an order with your supplier." → "You placed an order with your
supplier (14 cases).", or of its name; a result such as "You paid 3 coins." is taken as the
whole sentence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from string import Formatter
from typing import Any, NamedTuple, cast

from mesa_llm.canonical import member_value
from mesa_llm.errors import ConfigError
from mesa_llm.records import Outcome
from mesa_llm.text import clip, listed, number_text, one_line, quoted, sentence_inside, tally, whole_sentence

Sentence = str | Callable[[Outcome], str]
"""A sentence with fields in braces, or a function that makes it of the outcome."""

MAX_SENTENCE = 600
"""Maximum number of characters of what is remembered of one action or answer."""

MAX_VALUE = 300
"""Maximum number of characters of a value in a sentence that is made of name and arguments."""

MAX_PHRASE = 90
"""Maximum number of characters of a docstring's first sentence that is remembered instead of the action's name."""

_SAYS_NOTHING = frozenset({"", "done", "ok", "okay", "true", "none", "success"})
"""Results that add nothing to the sentence."""

_NOUN = re.compile(r"[^\W\d_]{2,}.*")
"""A format that is the noun of a number, such as `case`, or `person|people`; others are Python's."""


class Wording(NamedTuple):
    """How an agent remembers one of its actions."""

    name: str
    """Name of the action."""

    did: Sentence
    """The sentence that its author gave; empty: none."""

    wanted: str
    """The same after "You wanted to", for what was refused; empty: see `infinitive`."""

    past: str
    """What the action does, in the past tense, without "You": `placed an order with your supplier`."""

    infinitive: str
    """The same in the infinitive."""


@lru_cache(maxsize=4096)
def wording_of(name: str, description: str, did: Sentence = "") -> Wording:
    """Return how an action is remembered.

    Args:
        name: Name of the action.
        description: Its docstring's text.
        did: The sentence that its author gave; empty: none.
    """
    verb, *others = _phrase_of(name, description)
    wanted = ""
    if isinstance(did, str) and (found := re.match(r"You (\w+)\b(?! not\b)", did)):
        hints = {word.lower() for word in re.findall(r"[^\W\d_]+", f"{name.replace('_', ' ')} {description}")}
        wanted = infinitive_of(found[1], hints) + _first_sentence(did[found.end() :])
    infinitive = " ".join([verb, *others])
    is_known = verb in _IRREGULAR or verb in _REGULAR
    past = " ".join([past_of(verb), *others]) if is_known else f"chose to {infinitive}"
    return Wording(name, did, wanted, past, infinitive)


def check_sentence(did: object, fields: Collection[str], owner: str) -> None:
    """Check the sentence of an action or an observation.

    Args:
        did: The sentence, or a function that makes it.
        fields: Names that may stand in its braces, besides `result` and `facts`.
        owner: Whose it is, for errors.

    Raises:
        ConfigError: If it is neither, is no template, or has another field.
    """
    if callable(did):
        return
    if not isinstance(did, str):
        raise ConfigError(f"{owner}: did= is a sentence, or a function of the outcome, got {did!r:.60}")
    try:
        names = [re.split(r"[.\[]", name)[0] for _, name, _, _ in Formatter().parse(did) if name is not None]
    except ValueError as error:
        raise ConfigError(f"{owner}: the sentence {did!r:.80} cannot be filled in: {error}") from None
    for name in names:
        if name not in fields and name not in ("result", "facts"):
            known = ", ".join([*fields, "result", "facts[…]"])
            raise ConfigError(f"{owner}: the sentence {did!r:.80} has a field {name!r:.40}; it may have {known}")


def action_text(wording: Wording, outcome: Outcome) -> str:
    """Return the sentence in which an agent remembers an action.

    Args:
        wording: How the action is remembered.
        outcome: What came of it.
    """
    if not outcome.ok:
        wish = _detailed(wording.infinitive, outcome.arguments)
        if wording.wanted and "{facts" not in wording.wanted:  # what was refused has none
            wish = _filled(wording.wanted, outcome, with_result=False)
        return _refused(wish, str(outcome.result).removeprefix(f"{wording.name}: "))
    if wording.did:
        return _given(wording.did, outcome)
    result = result_text(outcome.result)
    if _is_of_the_past(result):
        return clip(result, MAX_SENTENCE)
    sentence = whole_sentence(f"You {_detailed(wording.past, outcome.arguments)}")
    return one_line(f"{sentence} {result}", MAX_SENTENCE)


def answer_text(remembered: Sentence, outcome: Outcome) -> str:
    """Return the sentence in which an agent remembers a typed answer.

    Args:
        remembered: The sentence of the observation that asked for it; empty: one made of the answer.
        outcome: What came of it, with the answer as its argument.
    """
    if not outcome.ok:
        if isinstance(remembered, str) and (found := re.match(r"You (\w+)\b(?! not\b)", remembered)):
            wanted = infinitive_of(found[1], ()) + _first_sentence(remembered[found.end() :])
            return _refused(_filled(wanted, outcome, with_result=False), str(outcome.result))
        return _refused(f"answer {_answer_in(outcome)}", str(outcome.result))
    if remembered:
        return _given(remembered, outcome)
    result = result_text(outcome.result)
    if _is_of_the_past(result):
        return clip(result, MAX_SENTENCE)
    answer = outcome.arguments.get("answer")
    is_list = isinstance(answer, list | tuple | Mapping)
    sentence = whole_sentence(f"You answered{':' if is_list else ''} {_answer_in(outcome)}")
    return one_line(f"{sentence} {result}", MAX_SENTENCE)


def result_text(result: object) -> str:
    """Return what a result adds to the sentence of its action, as a sentence; empty if it only says that it is done."""
    if isinstance(result, str):
        line = one_line(result)
        if line.startswith("You "):
            return whole_sentence(line)
        return "" if line.strip(" .!").lower() in _SAYS_NOTHING else whole_sentence(line)
    return "" if result is None or isinstance(result, bool) else f"The result was {shown(result)}."


def _is_of_the_past(result: str) -> bool:
    """Check whether a result says what its reader did: `You paid 3.`, not `You have 3 coins.`"""
    return result.startswith("You ") and ((verb := result.split(maxsplit=2)[1]).endswith("ed") or verb in _PAST)


def shown(value: object) -> str:
    """Write a value for a sentence: numbers without noise, `yes` and `no`, and lists as one says them."""
    plain = member_value(value)
    match plain:
        case bool():
            return "yes" if plain else "no"
        case int() | float():
            return number_text(plain)
        case None:
            return "nothing"
        case str():
            return one_line(plain)
        case Mapping():
            fields = cast("Mapping[Any, Any]", plain)
            return listed([f"{_label(str(name))} {shown(field)}" for name, field in fields.items()]) or "nothing"
        case list() | tuple() | set() | frozenset():
            return listed([shown(item) for item in cast("list[Any]", plain)]) or "nothing"
        case _:
            return one_line(str(plain))


def _given(did: Sentence, outcome: Outcome) -> str:
    """Fill in a sentence that somebody gave."""
    text = _filled(did, outcome) if isinstance(did, str) else did(outcome)
    if not isinstance(cast("Any", text), str):
        raise ConfigError(f"the sentence of {outcome.action!r} is a function that returned {text!r:.60}, no text")
    return whole_sentence(one_line(text, MAX_SENTENCE))


def _filled(template: str, outcome: Outcome, *, with_result: bool = True) -> str:
    """Fill in a template.

    Raises:
        ConfigError: If it names a part of the facts or of an argument that there is not.
    """
    fields: dict[str, Any] = {name: _Shown(value) for name, value in outcome.arguments.items()}
    answer = outcome.arguments.get("answer")
    if outcome.action == "answer" and isinstance(answer, Mapping):
        fields |= {str(name): _Shown(value) for name, value in cast("Mapping[Any, Any]", answer).items()}
    fields["facts"] = _Shown(outcome.facts)
    fields["result"] = result_text(outcome.result) if with_result else ""
    try:
        return Formatter().vformat(template, (), _Fields(fields))
    except (LookupError, TypeError, ValueError) as error:
        raise ConfigError(
            f"the sentence {template!r:.80} of {outcome.action!r} cannot be filled in: {error!r:.80}; there are the "
            f"arguments {dict(outcome.arguments)!r:.120} and the facts {dict(outcome.facts)!r:.120}"
        ) from None


class _Fields(dict[str, Any]):
    """Values of a template; an argument that was left out is none."""

    def __missing__(self, name: str) -> _Shown:
        return _Shown(None)


class _Shown:
    """A value in a template: `{cases}`, counted as `{cases:case}` or `{people:person|people}`, quoted as `{text!r}`."""

    __slots__ = ("_value",)

    def __init__(self, value: object) -> None:
        self._value = member_value(value)

    def __getitem__(self, key: Any) -> _Shown:
        inner: Any = self._value
        return _Shown(inner[key])

    def __repr__(self) -> str:
        return quoted(self._value if isinstance(self._value, str) else shown(self._value), MAX_SENTENCE)

    def __format__(self, form: str) -> str:
        if not form or self._value is None:
            return shown(self._value)
        if _NOUN.fullmatch(form) and isinstance(self._value, int | float):
            noun, _, plural = form.partition("|")
            return tally(self._value, noun, plural)
        try:
            return format(self._value, form)
        except (TypeError, ValueError):  # a refused argument may be of any type
            return shown(self._value)


def _refused(wish: str, reason: str) -> str:
    """Write that something was refused, and why."""
    stem = one_line(wish, MAX_SENTENCE // 2).rstrip(" .,:;")
    cause = sentence_inside(one_line(reason)) or "it was refused"
    return whole_sentence(one_line(f"You wanted to {stem}, but {cause}", MAX_SENTENCE))


def _first_sentence(template: str) -> str:
    """Return a template up to the end of its first sentence, and without its result."""
    return template.replace("{result}", "").partition(". ")[0].rstrip(" .!")


def _answer_in(outcome: Outcome) -> str:
    """Write an answer: texts of several words in quotation marks."""
    answer = outcome.arguments.get("answer")
    return quoted(answer, MAX_SENTENCE) if isinstance(answer, str) and _is_free_text(answer) else shown(answer)


def _is_free_text(value: str) -> bool:
    """Check whether a text is written freely, and no name or option."""
    return " " in value.strip() or len(value) > 30 or not value.isprintable()


def _label(name: str) -> str:
    """Write the name of an argument in words."""
    return name.removesuffix("_id").replace("_", " ").strip() or name


def _detailed(phrase: str, arguments: Mapping[str, Any]) -> str:
    """Add arguments to a phrase: short values in parentheses, texts in quotation marks after a colon."""
    brief: list[str] = []
    texts: list[str] = []
    values = {name: member_value(value) for name, value in arguments.items()}
    values = {name: value for name, value in values.items() if value is not None and value not in ("", [], {})}
    for name, value in values.items():
        label = _label(name)
        if isinstance(value, str) and _is_free_text(value):
            texts.append(quoted(value, MAX_VALUE))
        elif isinstance(value, str) and len(values) == 1 and label not in _PREPOSITIONS:
            brief.append(one_line(value))
        elif (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and label.endswith("s")
            and not label.endswith("ss")
        ):
            number = number_text(value)
            brief.append(f"{number} {label[:-1] if number == '1' else label}")
        else:
            written = one_line(shown(value), MAX_VALUE)
            brief.append(written if re.search(rf"\b{re.escape(label)}$", phrase) else f"{label} {written}")
    return phrase + (f" ({', '.join(brief)})" if brief else "") + (f": {' '.join(texts)}" if texts else "")


_PREPOSITIONS = frozenset({"about", "at", "for", "from", "in", "into", "on", "to", "with"})
"""Names of arguments that say more than their value."""


# -- verbs

_IRREGULAR = dict(
    re.findall(
        r"(\w+)/(\w+)",
        "be/were become/became begin/began bet/bet bid/bid bind/bound bite/bit blow/blew break/broke bring/brought "
        "build/built burn/burned buy/bought cast/cast catch/caught choose/chose come/came cost/cost cut/cut deal/dealt "
        "dig/dug do/did draw/drew drink/drank drive/drove eat/ate fall/fell feed/fed feel/felt fight/fought find/found "
        "flee/fled fly/flew forbid/forbade forget/forgot forgive/forgave get/got give/gave go/went grow/grew hang/hung "
        "have/had hear/heard hide/hid hit/hit hold/held keep/kept know/knew lay/laid lead/led learn/learned "
        "leave/left lend/lent let/let lie/lay lose/lost make/made mean/meant meet/met overbid/overbid pay/paid put/put "
        "quit/quit read/read rebuild/rebuilt repay/repaid resell/resold rethink/rethought ride/rode ring/rang "
        "rise/rose run/ran say/said see/saw seek/sought sell/sold send/sent set/set shake/shook "
        "shoot/shot show/showed shut/shut sing/sang sit/sat sleep/slept speak/spoke spend/spent split/split "
        "spread/spread stand/stood steal/stole stick/stuck strike/struck swear/swore swim/swam take/took "
        "teach/taught tell/told think/thought throw/threw undercut/undercut understand/understood undo/undid "
        "wake/woke wear/wore win/won withdraw/withdrew write/wrote rewrite/rewrote outbid/outbid",
    )
)
"""Infinitive → past tense, where no rule gives it."""

_REGULAR = frozenset(
    re.findall(
        r"\w+",
        "accept accuse add adopt advertise agree allocate announce answer apply approve ask attack attend "
        "avoid award back believe block boost borrow call cancel care change charge chat claim close collect "
        "comment commit compare compete consume contribute cooperate copy create cross decide declare defect "
        "defend deliver demand deposit disagree dislike divide donate earn elect employ end enter escape "
        "estimate exchange exit explain explore fire fish follow forage grant graze guess harvest help hire "
        "hunt ignore infect inform insult invest invite isolate join judge kill like list listen live look "
        "love migrate move mute name nominate observe offer open order pass place plan plant play please "
        "pledge poll post praise predict prepare price produce promise propose protect protest publish punish "
        "purchase push question raise rate react recommend refuse reject release remain remember remove rent "
        "reply report request rest retweet return reward save search settle share shift ship sign skip smile "
        "start stay stop store study submit subscribe support switch talk teach test thank tip trade transfer "
        "travel trust try turn unfollow update use vaccinate visit vote wait walk warn watch whisper wish "
        "work",
    )
)
"""Regular verbs of actions in agent-based models, which a name may begin with."""

_PAST = {past: verb for verb, past in _IRREGULAR.items()} | {"was": "be", "lay": "lie", "saw": "see"}

_DOUBLED = frozenset(
    re.findall(
        r"\w+",
        "stop plan skip ship grab drop clap step trip swap tip chat commit admit permit refer prefer",
    )
)

_NO_VERB = frozenset(
    re.findall(
        r"\w+",
        "the a an this that these those it its your you if when while use used each every all any some no not "
        "for in on at to of as by with from i we he she they",
    )
)


def past_of(verb: str) -> str:
    """Return the past tense of a verb."""
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    if verb.endswith("e"):
        return f"{verb}d"
    if verb.endswith("y") and verb[-2:-1] not in "aeiou":
        return f"{verb[:-1]}ied"
    return f"{verb}{verb[-1]}ed" if verb in _DOUBLED else f"{verb}ed"


def infinitive_of(past: str, hints: Collection[str]) -> str:
    """Return the infinitive of a verb in the past tense.

    Args:
        past: The past tense.
        hints: Words among which the infinitive may be.
    """
    if past in _PAST:
        return _PAST[past]
    if not past.endswith("ed"):
        return past
    stem = past[:-2]
    forms = [f"{stem[:-1]}y" if stem.endswith("i") else stem, stem, f"{stem}e", stem[:-1]]
    forms = [form for form in forms if past_of(form) == past]
    for known in (hints, _REGULAR):
        for form in forms:
            if form in known:
                return form
    takes_e = re.search(
        r"([vcguz]|[^aeiou]in|[^aeo][ia]d|rs|[^s]s|[^aeou]at|[bptdgk]l|[^aeou][iau]r|(?<!\w\w\w)[aeiou][kpt])$", stem
    )
    return f"{stem}e" if takes_e and f"{stem}e" in forms else next(iter(forms), stem)


def _phrase_of(name: str, description: str) -> list[str]:
    """Return what an action does as the words of an imperative: by its docstring if that begins with a verb."""
    parts = name.lower().split("_")
    named = [part for part in parts if part] or [name]
    first = re.split(r"[.!?](?:\s|$)|[;:,(–]", description, maxsplit=1)[0].strip()
    words = first.split()
    if words and len(first) <= MAX_PHRASE and [word.lower() for word in words] != named:
        verb = _verb_in(words[0].lower(), named[0])
        if verb:
            return [verb, *words[1:]]
    if named[0] in _IRREGULAR or named[0] in _REGULAR:
        return named
    return ["choose", *named]


def _verb_in(word: str, named: str) -> str:
    """Return the infinitive that a docstring begins with; empty if that is no verb."""
    if word == named or word in _IRREGULAR or word in _REGULAR:
        return word
    stem = word[:-1] if word.endswith("s") else word
    for form in (stem, word[:-2] if word.endswith("es") else stem, f"{word[:-3]}y" if word.endswith("ies") else stem):
        if form != word and (form == named or form in _IRREGULAR or form in _REGULAR):
            return form
    is_other = (
        not (word.isascii() and word.isalpha()) or word in _NO_VERB or word.endswith(("ing", "ed", "ly", "ion", "s"))
    )
    return "" if is_other else word
