"""What may be said in a turn of talk: one's own words, new, and as long as was asked for.

Language models of all sizes repeat what they have just read, go on in the names of others, and agree with themselves.
`Speech` reads a reply as the line of one speaker. It takes off the speaker's name, and cuts the line where it goes on
in another's name or in circles. It refuses a line that repeats another one or the prompt, that speaks of its speaker as
of somebody else, or that is too long. The language model is then asked once more, with the reason; after that, what can
be said of its replies is said, and if that is nothing the speaker is silent. Conversations (`model.converse`) use it in
every turn; a world with a room of its own gives its observations `speech=Speech(…)`. Rule twins, the random baseline
and people say what they say.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mesa_llm.agents.text import reason_text
from mesa_llm.engine.decision import UNSPOKEN
from mesa_llm.errors import ParseError
from mesa_llm.records import Decision, ToolCall
from mesa_llm.text import COMMON, MAX_QUOTE, clip, counted, noun_for, one_line, quoted, sentences

MAX_UTTERANCE = 1_000
"""Maximum number of characters of an utterance."""

SHINGLE = 3
"""Number of words in a row that count as one match."""

REPEATED = 0.6
"""Share of a line's runs of three words that stand in an earlier text, from which on it repeats that text.

One changed word breaks three runs, so a line of twelve words that changes one still shares 70 %, and one that changes
two apart from each other 40 %. The threshold lies between: one word is no answer, two may be.
"""

LONG_RUN, LONG_RUN_CHARACTERS = 8, 24
"""Number of words in a row, and of their characters, that are taken over and not said anew, however long the line."""

MIN_WORDS = 5
"""Number of words from which on a line can repeat another one in part; shorter lines repeat only their like."""

SILENT = "silent"
"""Beginning of the description of how a reply was read, if nothing of it was said."""

NOTES = {
    "heard": "repeats {name}",
    "own": "repeats itself",
    "prompt": "repeats the prompt",
    "other": "speaks for {name}",
    "self": "speaks of itself by name",
    "program": "speaks as a program",
    "empty": "says nothing",
    "long": "is too long",
}
"""Fault → its description in the run log."""

note_text = sentences(NOTES)

_WORD = re.compile(r"[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+(?:['’][^\W_]+)*")
"""A word; in scripts without spaces, a character."""

_SENTENCE_END = re.compile(
    r"(?<!\b[A-Z])(?<!\b(?:Mr|Ms|Dr|St|vs))(?<!\b(?:Mrs|e\.g|i\.e))[.!?…]+[\"'”’)\]]*\s+(?=\S)|[。！？]+[”’」』）]*"
)
"""The end of a sentence within a text."""

_PROGRAM = re.compile(
    r"\b(?:as an?|i am (?:just |only )?an?|i['’]m (?:just |only )?an?|being an?) "
    r"(?:ai\b|a\.i\.|artificial intelligence|(?:large )?language model|virtual assistant|chatbot|computer program)|"
    r"\bhow (?:can|may) i (?:help|assist) you\b",
    re.IGNORECASE,
)
"""Words of a program."""

_CIRCLE = re.compile(r"\b(\w.{7,160}?)\W+(?:\1\W+)+\1", re.DOTALL | re.IGNORECASE)
"""A phrase that comes three times in a row."""

_OPENING = ' \t\n"“‘*_[(-'
"""What may stand before a name that begins a line."""

_QUOTES = ('""', "“”", "«»", "„“", "''", "‘’", "**")
"""Marks around a whole line."""


def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a text, in small letters; in scripts without spaces, its characters."""
    return tuple(_WORD.findall(text.casefold().replace("’", "'")))


def sentences_of(text: str) -> list[str]:
    """Return the sentences of a text."""
    parts: list[str] = []
    start = 0
    for end in _SENTENCE_END.finditer(text):
        parts.append(text[start : end.end()].strip())
        start = end.end()
    return [part for part in (*parts, text[start:].strip()) if part]


def shared(words: Sequence[str], earlier: Sequence[str]) -> float:
    """Return the share of a text's runs of three words that stand in another one, from 0 to 1.

    Args:
        words: Words of the text.
        earlier: Words of the other one.
    """
    runs = _runs(words)
    return len(runs & _runs(earlier)) / len(runs) if runs else 0.0


def _numbers(words: Sequence[str]) -> Counter[str]:
    return Counter([word for word in words if word[0].isdigit()])


def _runs(words: Sequence[str], size: int = SHINGLE) -> set[tuple[str, ...]]:
    return {tuple(words[index : index + size]) for index in range(len(words) - size + 1)}


def repeats(text: str, earlier: str) -> bool:
    """Check whether a text says again what another one has said: the same words, or nearly all of them.

    A text that names a number which the other one does not is new: another amount is another proposal.

    Args:
        text: The text.
        earlier: The other one.
    """
    own, others = words_of(text), words_of(earlier)
    if not own or own == others:
        return own == others
    if len(own) < MIN_WORDS or _numbers(own) - _numbers(others):
        return False
    if shared(own, others) >= REPEATED:
        return True
    return any(len("".join(run)) >= LONG_RUN_CHARACTERS for run in _runs(own, LONG_RUN) & _runs(others, LONG_RUN))


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a line cannot be said."""

    kind: str
    """Its kind, one of `NOTES`."""

    values: Mapping[str, str]
    """What its texts name."""

    @property
    def reason(self) -> str:
        """The reason, for the language model."""
        return f"{reason_text(self.kind, **self.values)}"

    @property
    def note(self) -> str:
        """Its description in the run log."""
        return note_text(self.kind, **self.values)


@dataclass(frozen=True, slots=True)
class Speech:
    """What a speaker may say in its turn."""

    name: str
    """Name of the speaker."""

    others: tuple[str, ...] = ()
    """Names of the others."""

    own: tuple[str, ...] = ()
    """What the speaker has said so far."""

    heard: tuple[tuple[str, str], ...] = ()
    """Name and words of what the others have said so far."""

    max_sentences: int | None = 2
    """Maximum number of sentences; None: no limit."""

    max_words: int | None = None
    """Maximum number of words; None: no limit."""

    argument: str = ""
    """Argument of actions that holds the line; empty: the answer does."""

    def read(self, decision: Decision, prompt: str) -> Decision:
        """Return a decision with its line as it is said.

        Args:
            decision: The decision, as it was read from a reply.
            prompt: All that the speaker has read.

        Raises:
            ParseError: If the line cannot be said so; `partial` is the decision to take if the next one cannot be said
                either: to say what remains of this one, or nothing.
        """
        reply = self._line_in(decision)
        if reply is None:
            return decision
        line, notes = self.line_of(reply)
        fault = self.fault_of(line, reply, prompt)
        if fault is None and not self.is_too_long(line):
            return self._with_line(decision, line, notes)
        fault = fault or Fault("long", {"length": self.length})
        rest = self.remainder(line, prompt)
        if rest:
            partial = self._with_line(decision, rest, [*notes, f"{fault.note}, and was cut"])
        else:
            partial = _silence(decision, fault.note)
        raise ParseError(fault.reason, kind=UNSPOKEN, partial=partial)

    def line_of(self, reply: str) -> tuple[str, list[str]]:
        """Return what a reply says in its speaker's own name, on one line, and what was cut.

        Args:
            reply: The reply.
        """
        notes: list[str] = []
        text = reply.strip()
        if match := self._others_turn(text):
            text = text[: match.start("name")].rstrip(_OPENING)
            notes.append(f"cut where it goes on as {one_line(match['name'])}")
        text = _unquoted(one_line(text))
        for _ in range(2):
            text = _unquoted(re.sub(rf"^\W*(?:{self._own_names})\s*[:：]\s*", "", text, flags=re.IGNORECASE))
        if match := re.match(rf"As (?:{self._own_names}),\s+(?=\w)", text):
            text = f"{text[match.end()].upper()}{text[match.end() + 1 :]}"
        if match := re.search(rf"\W(?:{self._own_names})\s*[:：]\s", text):
            text = text[: match.start() + 1].rstrip()
            notes.append("cut where it begins again")
        without = _without_circles(text)
        if without != text:
            notes.append("cut where it goes in circles")
        return one_line(without, MAX_UTTERANCE), notes

    def fault_of(self, line: str, reply: str, prompt: str) -> Fault | None:
        """Return why a line cannot be said, but for its length; None if it can.

        Args:
            line: The line.
            reply: The reply that it is from.
            prompt: All that the speaker has read.
        """
        if not words_of(line):
            other = self._others_turn(reply.strip())
            return Fault("other", {"name": one_line(other["name"]), "own": self.name}) if other else Fault("empty", {})
        if other := self._claimed(line):
            return Fault("other", {"name": other, "own": self.name})
        if _PROGRAM.search(line):
            return Fault("program", {"own": self.name})
        for earlier in self.own:
            if repeats(line, earlier):
                return Fault("own", {"line": quoted(earlier, 200)})
        for name, earlier in self.heard:
            if repeats(line, earlier):
                return Fault("heard", {"name": name, "line": quoted(earlier, 200)})
        if self._names_itself(line):
            return Fault("self", {"own": self.name})
        for earlier in (*self.own, *[earlier for _, earlier in self.heard]):
            prompt = prompt.replace(earlier, "")
        return Fault("prompt", {}) if repeats(line, prompt) else None

    def is_too_long(self, line: str) -> bool:
        """Check whether a line is longer than was asked for."""
        if self.max_sentences is not None and len(sentences_of(line)) > self.max_sentences:
            return True
        return self.max_words is not None and len(words_of(line)) > self.max_words

    @property
    def length(self) -> str:
        """The length that is wanted, in words."""
        parts: list[str] = []
        if self.max_sentences is not None:
            parts.append(
                f"{_NUMBERS.get(self.max_sentences, self.max_sentences)} "
                f"{'short ' if self.max_words is None else ''}{noun_for(self.max_sentences, 'sentence')}"
            )
        if self.max_words is not None:
            parts.append(f"at most {counted(self.max_words, 'word')}")
        return " of ".join(parts)

    def remainder(self, line: str, prompt: str) -> str:
        """Return what can be said of a line that cannot be said as it is; empty if nothing can.

        Sentences that cannot be said are left out, and it is cut at the end of a sentence to the length that is wanted.

        Args:
            line: The line.
            prompt: All that the speaker has read.
        """
        kept: list[str] = []
        for sentence in sentences_of(line):
            if self.fault_of(sentence, sentence, prompt) is not None:
                continue
            if self.is_too_long(" ".join([*kept, sentence])):
                break
            kept.append(sentence)
        rest = " ".join(kept)
        is_enough = len(words_of(rest)) >= MIN_WORDS and self.fault_of(rest, rest, prompt) is None
        return rest if is_enough else ""

    # -- names

    @property
    def _own_names(self) -> str:
        return "|".join(map(re.escape, dict.fromkeys([self.name, self.name.split(" (")[0], "You", "Me"])))

    def _others_turn(self, text: str) -> re.Match[str] | None:
        """Find the first place at which a text goes on in the name of somebody else."""
        names = "|".join(re.escape(name) for name in sorted(self.others, key=len, reverse=True) if name)
        if not names:
            return None
        return re.search(
            rf"(?:^|\n|[.!?…。！？\"”’)\]*])[\s\"“‘*_\[(-]*(?P<name>{names})\s*[\])*_]*\s*[:：](?=\s|[\"“*]|$|\w)",
            text,
            re.IGNORECASE,
        )

    def _claimed(self, line: str) -> str:
        """Return the name of somebody else in which a line is spoken, as in “As Ruth, I …”; empty if it is not."""
        for other in self.others:
            if other and re.match(rf"(?:As|I am|I['’]m|My name is) {re.escape(other)}\b(?!['’])", line):
                return other
        return ""

    def _names_itself(self, line: str) -> bool:
        """Check whether a line speaks to, or of, its own speaker as of somebody else."""
        name = self.name.split(" (")[0]
        if not name or name.casefold() in COMMON or any(name in other for other in self.others):
            return False
        own = re.escape(name)
        if not re.search(rf"\b{own}\b", line):
            return False
        line = re.sub(rf"{_INTRODUCTION}{own}\b|\b{own} (?:here|speaking)\b|[—–-]\s*{own}\W*$", " ", line)
        return re.search(rf"\b{own}\b", line) is not None

    # -- decisions

    def _line_in(self, decision: Decision) -> str | None:
        """Return the line that a decision holds; None if it holds none."""
        if not self.argument:
            return str(decision.answer) if isinstance(decision.answer, str) else None
        lines = [call.arguments[self.argument] for call in decision.actions if self.argument in call.arguments]
        return str(lines[0]) if lines else None

    def _with_line(self, decision: Decision, line: str, notes: Sequence[str]) -> Decision:
        reading = "; ".join((decision.reading, *notes)) if notes else decision.reading
        if not self.argument:
            return replace(decision, answer=line, reading=reading)
        calls = tuple(_spoken_call(call, self.argument, line) for call in decision.actions)
        return replace(decision, actions=calls, reading=reading)


_NUMBERS = {1: "one", 2: "two", 3: "three", 4: "four", 5: "five"}

_INTRODUCTION = (
    r"(?i:\b(?:i am|i['’]m|my name is|my name['’]s|call me|this is|i|me|myself|ich bin|ich heiße|ich|je suis|moi|"
    r"je m['’]appelle|soy|me llamo|yo|sono|mi chiamo)),?\s+"
)
"""Words before the own name with which somebody introduces itself."""


def _spoken_call(call: ToolCall, argument: str, line: str) -> ToolCall:
    if argument not in call.arguments:
        return call
    return ToolCall(call.name, {**call.arguments, argument: line}, call.call_id)


def _silence(decision: Decision, note: str) -> Decision:
    """Return the decision to say nothing, with what was written as its text."""
    written = str(decision.answer) if decision.answer is not None else "; ".join(map(str, decision.actions))
    text = "\n".join(filter(None, (decision.text, clip(written, MAX_QUOTE))))
    return replace(decision, actions=(), answer=None, is_null=False, text=text, reading=f"{SILENT}: it {note}")


def _unquoted(text: str) -> str:
    """Return a text without marks around all of it."""
    text = text.strip()
    while len(text) > 1 and text[0] + text[-1] in _QUOTES and text[0] not in text[1:-1]:
        text = text[1:-1].strip()
    return text


def _without_circles(text: str) -> str:
    """Return a text up to the place where it begins to repeat itself."""
    text = text[: 4 * MAX_UTTERANCE]
    if match := _CIRCLE.search(text):
        text = text[: match.end(1)]
    kept: list[str] = []
    for sentence in sentences_of(text):
        if len(words_of(sentence)) > SHINGLE and any(repeats(sentence, earlier) for earlier in kept):
            break
        kept.append(sentence)
    return " ".join(kept)


def silence_in(decision: Decision) -> str:
    """Return why somebody was silent who could have spoken; empty if it was not."""
    parts = decision.reading.split("; ") if not decision.has_answer and not decision.actions else []
    return next((part.removeprefix(f"{SILENT}: it ") for part in parts if part.startswith(SILENT)), "")
