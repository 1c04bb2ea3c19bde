"""Rule-based stance of a text on a topic: the side it takes, if it mentions the topic at all.

VADER's score of a whole text (`beliefs.tone`) measures its mood: "We oppose this wonderful, fair and excellent law" is
cheerful, and against. Here, only sentences about the topic count. Words that take a side in them ("support", "oppose"),
inverted by a preceding negation, determine the side. The mood counts only without such words: "The ban is a disaster"
takes a side by mood alone. A text that does not mention the topic has no stance, rather than a neutral one, and
influences no reader.

Limits: irony, comparisons, questions and implied sides are misread or read as mood. Someone against cars is read as
    being against a ban on cars (name such a topic by `words=("ban",)`). Where this matters, have a language model read
    the posts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from statistics import fmean

from mesa_llm.errors import ConfigError
from mesa_llm.text import tone

SENTENCE = re.compile(r"[^.!?\n]+[.!?]*")
WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")

FOR = re.compile(
    r"\b(?:(?:support|favou?r|endors|applaud|approv|welcom)(?:s|es|ed|e|ing|able)?|in favou?r|agree[sd]?|agreeing|"
    r"(?:vot(?:e[sd]?|ing)|campaign(?:s|ed|ing)?|am|['’]m|are|['’]re|is|was|were|all|stand|speak) for|yes)\b",
    re.I,
)
"""Words that take the side of the topic."""

AGAINST = re.compile(
    r"\b(?:(?:oppos|reject|condemn|resist|protest|refus|denounc|object)(?:s|es|ed|e|ing|ion|ions)?|against|"
    r"disagree(?:s|d|ing)?|disapprov(?:e[sd]?|ing)|stop|scrap|no to|say no)\b",
    re.I,
)
"""Words that take the side against it."""

NEGATION = re.compile(r"(?:\b(?:not|never|no|nobody|none|cannot|hardly|without)|n['’]t)\W+(?:\w+\W+){0,2}$", re.I)
"""A negation, followed by at most two words."""

GOES_ON = re.compile(r"\W*(?:it|this|that|these|those|they)\b", re.I)
"""Start of a sentence that continues the subject of the previous one."""

COMMON = frozenset(
    WORD.findall(
        "about after again all also and any are been before being between but can did does for from had has have help "
        "her his how into its just less like make many more most much need new not now off old only other our out over "
        "own same say see she should some such than that the their them then there these they this those through too "
        "two use very want was way were what when where which while who why will with would yes you your"
    )
)
"""Words of three letters or more that name no topic."""

MIN_LETTERS = 3
"""Minimum number of letters of a word that names a topic."""


class TopicStance:
    """Measures the stance of texts about one topic.

    Attributes:
        words: Words that name the topic, in lower case.
    """

    def __init__(self, topic: str, words: Sequence[str] = ()) -> None:
        """Find the words that name the topic.

        Args:
            topic: What texts are for or against, for example "a ban on cars in the centre".
            words: Words that name it; empty for the words of the topic except common ones.

        Raises:
            ConfigError: If no words are left to name it.
        """
        own_words = [word.lower() for word in words] or [
            word for word in map(str.lower, WORD.findall(topic)) if len(word) >= MIN_LETTERS and word not in COMMON
        ]
        self.words = tuple(dict.fromkeys(own_words))
        if not self.words:
            raise ConfigError(f"the topic {topic!r:.80} has no words that name it; set `words`")
        stems = sorted(re.escape(stem_of(word)) for word in self.words)
        self._names = re.compile(rf"\b(?:{'|'.join(stems)})(?:e|e?s|\w?ed|\w?ing|ers?)?\b", re.I)
        self._measure = lru_cache(maxsize=100_000)(self._stance)

    def __call__(self, text: str) -> float | None:
        """Return the stance of a text, -1 (against) to 1 (for); None if it does not mention the topic."""
        return self._measure(text)

    def _stance(self, text: str) -> float | None:
        scores: list[float] = []
        is_about = False
        for sentence in SENTENCE.findall(text):
            is_about = bool(self._names.search(sentence)) or (is_about and bool(GOES_ON.match(sentence)))
            if is_about:
                scores.append(side_of(sentence, self._names))
        return fmean(scores) if scores else None


def side_of(sentence: str, names: re.Pattern[str] | None = None) -> float:
    """Return the side a sentence takes, -1 to 1: by its words for and against, or else by its mood.

    Args:
        sentence: The sentence.
        names: Matches the names of the topic, which take no side and have no mood.
    """
    sides: list[int] = []
    for words, side in ((FOR, 1), (AGAINST, -1)):
        for match in words.finditer(sentence):
            if names is None or not names.search(match.group()):
                sides.append(-side if NEGATION.search(sentence[: match.start()]) else side)
    return fmean(sides) if sides else tone(sentence if names is None else names.sub("it", sentence))


def stem_of(word: str) -> str:
    """Return a word without a plural ending or a verb's final -e."""
    return re.sub(r"(?:(?<=[^s])s|e)$", "", word) if len(word) > MIN_LETTERS else word
