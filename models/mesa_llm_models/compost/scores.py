"""Measures of caricature in texts of simulated people: individuation and exaggeration.

Source:
    Cheng, Piccardi & Yang (2023), CoMPosT, EMNLP (arXiv 2310.11501), and their code at `9cda928`.
"""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from string import ascii_lowercase
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from mesa_llm.errors import ConfigError, require_extra
from mesa_llm.experiments.benchmarks import note_scoring
from mesa_llm.tables import read_table, whole_rows
from mesa_llm.world import Rules

FloatArray = NDArray[np.floating[Any]]

Embed = Callable[[Sequence[str]], FloatArray]
"""Turns texts into vectors, one row a text."""

Z_MIN = 1.96
"""z score above which a word tells two groups apart."""

TEST_SHARE = 0.2
"""Share of the texts that the classifier is tested on."""

N_TREES = 100
"""Number of trees in a random forest of scikit-learn."""

CHANCE = 0.5
"""Expected individuation where two personas write the same; and expected exaggeration of someone who at random writes
either as the persona does without a topic, or as the default persona does on the topic."""

_SENTENCES = re.compile(r"(?<=[.!?])\s+")


class CorpusText(NamedTuple):
    """One text of a corpus."""

    persona: str
    """Persona that is simulated."""

    topic: str
    """Topic of the text."""

    text: str
    """The text."""


class PersonaTopic(NamedTuple):
    """A persona on a topic."""

    persona: str
    """Persona that is simulated."""

    topic: str
    """Topic of its texts."""


@dataclass(frozen=True)
class Controls:
    """The default persona and topic, which simulations are compared with."""

    persona: str = "person"
    """The default persona."""

    topic: str = "comment"
    """The default topic: none in particular."""


def read_corpus(path: str | Path) -> list[CorpusText]:
    """Read texts from a table with the columns `persona`, `topic` and `response`, as the original files have them.

    Args:
        path: The file; see `mesa_llm.tables.read_table`.

    Returns:
        The texts, in order; rows in which one of the three is empty are left out.

    Raises:
        ConfigError: If the file cannot be read, lacks a column, or has no complete row.
    """
    names = ("persona", "topic", "response")
    rows = whole_rows(path, read_table(path, names, missing=()))
    columns = list(dict.fromkeys(column for row in rows for column in row))
    if lacking := [name for name in names if name not in columns]:
        raise ConfigError(
            f"{path}: there is no column {lacking[0]!r}, or nothing in it; wanted persona, topic, response; found "
            f"{', '.join(columns)}"
        )
    replies = [CorpusText(*(str(row[name]) for name in names)) for row in rows if all(name in row for name in names)]
    if not replies:
        raise ConfigError(f"{path}: none of the {len(rows)} rows has a persona, a topic and a response")
    return replies


# -- seed words


def tokens(text: str, rules: Rules = "corrected") -> list[str]:
    """Divide a text at white space into words in lower case, of letters alone; a word without letters becomes ''.

    Args:
        text: The text.
        rules: `original`: only a to z are letters, so that `café` is `caf`.
    """
    is_letter = str.isalpha if rules == "corrected" else ascii_lowercase.__contains__
    return ["".join(filter(is_letter, word)) for word in text.lower().split()]


def log_odds(
    first: Iterable[str], second: Iterable[str], background: Iterable[str], rules: Rules = "corrected"
) -> dict[str, float]:
    """Compute how much more likely each word is in one group of texts than in another.

    Args:
        first: Texts of the one group.
        second: Texts of the other.
        background: Texts whose word counts are the prior.
        rules: How texts are divided into words; see `tokens`.

    Returns:
        Word → z score of its log odds ratio; positive if it is more likely in the first group.

    Source:
        Monroe, Colaresi & Quinn (2008), Fightin' Words, Political Analysis 16(4): informative Dirichlet prior.
    """
    one, other, prior = (
        Counter(word for text in texts for word in tokens(text, rules)) for texts in (first, second, background)
    )
    words = list(dict.fromkeys([*prior, *one, *other]))
    for word in words:
        prior[word] = prior[word] or 1
    n_one, n_other, n_prior = one.total(), other.total(), prior.total()
    z_scores: dict[str, float] = {}
    for word in words:
        a, b = one[word] + prior[word], other[word] + prior[word]
        rest_a, rest_b = n_one + n_prior - a, n_other + n_prior - b
        if rest_a <= 0 or rest_b <= 0:  # the only word in the texts
            continue
        delta = math.log(a / rest_a) - math.log(b / rest_b)
        z_scores[word] = delta / math.sqrt(1 / a + 1 / b)
    return z_scores


@dataclass(frozen=True)
class SeedWords:
    """Words that tell a persona from a topic."""

    persona: Mapping[str, float]
    """Words of the persona without a topic → z score."""

    topic: Mapping[str, float]
    """Words of the topic, written by the default persona → z score."""


# -- exaggeration


def mean_cosine(vectors: FloatArray, axis: FloatArray) -> float:
    """Compute the mean cosine of vectors with an axis; NaN where one of them is of length 0.

    Args:
        vectors: Shape `(texts, dimensions)`.
        axis: Shape `(dimensions,)`.
    """
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(axis[None], axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.mean((vectors * axis).sum(axis=1) / lengths))


def exaggeration(axis: FloatArray, cell: FloatArray, default_persona: FloatArray, default_topic: FloatArray) -> float:
    """Compute how far texts lie from the default persona on their topic, 0, to their persona without a topic, 1.

    Args:
        axis: Persona pole minus topic pole, shape `(dimensions,)`.
        cell: Vectors of the persona's texts on the topic, shape `(texts, dimensions)`.
        default_persona: Vectors of the default persona's texts on the topic, of the same shape.
        default_topic: Vectors of the persona's texts without a topic, of the same shape.

    Returns:
        The score, which can lie beyond both ends; infinite or NaN where the two ends coincide.
    """
    start, end = mean_cosine(default_persona, axis), mean_cosine(default_topic, axis)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.divide(mean_cosine(cell, axis) - start, end - start))


class Caricature:
    """Measures of a corpus.

    Attributes:
        personas: All personas but the default one, in the order of the corpus.
        topics: All topics, in the order of the corpus.
    """

    def __init__(
        self,
        corpus: Sequence[CorpusText],
        embed: Embed,
        controls: Controls = Controls(),
        rules: Rules = "corrected",
    ) -> None:
        """Sort the texts.

        Args:
            corpus: The texts, in order: the classifier's draws depend on it.
            embed: Turns texts into vectors.
            controls: The default persona and topic.
            rules: `original`: seed words consist of a to z, are looked for as a part of any word, in lower case alone,
                and may be empty; the default persona is scored, unless it is called `person`; the default topic, too,
                though it is 1 by construction; and a topic on which only one of the two personas wrote has an
                individuation of 1. `corrected`: seed words are whole words in any case, neither default is scored, and
                individuation needs at least two texts of each.
        """
        self.corpus, self.embed, self.controls = list(corpus), embed, controls
        self.rules: Rules = rules
        self.cells: dict[PersonaTopic, list[str]] = {}
        for reply in self.corpus:
            self.cells.setdefault(PersonaTopic(reply.persona, reply.topic), []).append(reply.text)
        self.topics = list(dict.fromkeys(reply.topic for reply in self.corpus))
        self.personas = [
            name for name in dict.fromkeys(reply.persona for reply in self.corpus) if name != controls.persona
        ]
        self._vectors: dict[PersonaTopic, FloatArray] = {}

    def vectors(self, cell: PersonaTopic) -> FloatArray:
        """Return the vectors of a cell's texts, shape `(texts, dimensions)`."""
        if cell not in self._vectors:
            self._vectors[cell] = np.asarray(self.embed(self.cells[cell]), dtype=float)
        return self._vectors[cell]

    def seed_words(self, cell: PersonaTopic) -> SeedWords:
        """Find the words that tell a cell's persona from its topic."""
        of_persona = self.cells.get(PersonaTopic(cell.persona, self.controls.topic), [])
        of_topic = self.cells.get(PersonaTopic(self.controls.persona, cell.topic), [])
        personas, topics = {cell.persona, self.controls.persona}, {cell.topic, self.controls.topic}
        background = [one.text for one in self.corpus if one.persona in personas and one.topic in topics]
        scores = log_odds(of_persona, of_topic, background, self.rules)
        if self.rules == "corrected":
            scores.pop("", None)
        return SeedWords(
            {word: z for word, z in scores.items() if z > Z_MIN},
            {word: -z for word, z in scores.items() if -z > Z_MIN},
        )

    def _sentences(self, cell: PersonaTopic, words: Iterable[str]) -> list[str]:
        """Collect the sentences of a cell that hold any of the words, once for each word that they hold."""
        sentences = [one for text in self.cells.get(cell, []) for one in _SENTENCES.split(text.strip()) if one]
        if self.rules == "original":
            return [sentence for word in words for sentence in sentences if word in sentence]
        pairs = [(sentence, set(tokens(sentence))) for sentence in sentences]
        return [sentence for word in words for sentence, own_words in pairs if word in own_words]

    def axis(self, cell: PersonaTopic) -> FloatArray | None:
        """Compute the axis from a cell's topic to its persona, shape `(dimensions,)`.

        Returns:
            The axis; None where no word, or no sentence, tells them apart.
        """
        words = self.seed_words(cell)
        of_persona = self._sentences(PersonaTopic(cell.persona, self.controls.topic), words.persona)
        of_topic = self._sentences(PersonaTopic(self.controls.persona, cell.topic), words.topic)
        if not of_persona or not of_topic:
            return None
        poles = [np.asarray(self.embed(sentences), dtype=float).mean(axis=0) for sentences in (of_persona, of_topic)]
        return poles[0] - poles[1]

    def exaggeration(self, cell: PersonaTopic) -> float | None:
        """Compute how exaggerated a cell is; see `exaggeration`. None where it cannot be."""
        ends = [PersonaTopic(self.controls.persona, cell.topic), PersonaTopic(cell.persona, self.controls.topic)]
        if not all(one in self.cells for one in (cell, *ends)):
            return None
        axis = self.axis(cell)
        if axis is None:
            return None
        score = exaggeration(axis, *(self.vectors(one) for one in (cell, *ends)))
        return score if math.isfinite(score) else None

    def exaggerations(self) -> dict[str, dict[str, float]]:
        """Compute the scores of all cells: persona → topic → score; cells without one are left out."""
        scored = list(self.personas)
        topics = self.topics
        if self.rules == "original" and self.controls.persona != "person":
            scored.append(self.controls.persona)
        if self.rules == "corrected":
            topics = [topic for topic in topics if topic != self.controls.topic]
        by_persona: dict[str, dict[str, float]] = {}
        for persona in scored:
            scores = {topic: self.exaggeration(PersonaTopic(persona, topic)) for topic in topics}
            if finite_scores := {topic: score for topic, score in scores.items() if score is not None}:
                by_persona[persona] = finite_scores
        return by_persona

    def individuation(self, persona: str, topic: str) -> Individuation | None:
        """Test how well a persona's texts on a topic can be told from the default persona's.

        Returns:
            The result; None where either has fewer than two texts. Under the original rules, any two texts are enough,
            and the individuation is 1 if only one persona wrote them.
        """
        replies = [one for one in self.corpus if one.topic == topic and one.persona in (persona, self.controls.persona)]
        labels = [one.persona for one in replies]
        counts = Counter(labels)
        if len(labels) < 2 or (self.rules == "corrected" and (len(counts) < 2 or min(counts.values()) < 2)):
            return None
        rows = {name: iter(self.vectors(PersonaTopic(name, topic))) for name in counts}
        return individuation(np.array([next(rows[label]) for label in labels]), labels)

    def individuations(self) -> dict[str, dict[str, Individuation]]:
        """Test all personas on all topics, the default topic included: persona → topic → result."""
        found: dict[str, dict[str, Individuation]] = {persona: {} for persona in self.personas}
        cells = [(persona, topic) for persona in self.personas for topic in self.topics]
        for n_done, (persona, topic) in enumerate(cells):
            note_scoring(n_done, len(cells))
            result = self.individuation(persona, topic)
            if result is not None:
                found[persona][topic] = result
        return found


# -- individuation


@dataclass(frozen=True)
class Individuation:
    """How well a random forest tells two personas apart."""

    accuracy: float
    """Share of the test texts that were classified correctly."""

    macro_f1: float
    """Mean of the F1 scores of both personas."""

    tested: tuple[int, ...] = field(default=(), repr=False)
    """Indices of the test texts."""


def individuation(vectors: FloatArray, labels: Sequence[Any]) -> Individuation:
    """Test how well a random forest tells the texts of two personas apart, on a fifth of the texts.

    Args:
        vectors: The texts' vectors in the order of the corpus, shape `(texts, dimensions)`.
        labels: Persona of each text.
    """
    train, test = split(len(labels))
    names = np.asarray(labels)
    predictions = forest_predictions(vectors[train], names[train], vectors[test])
    accuracy, f1 = float(np.mean(predictions == names[test])), macro_f1(names[test], predictions)
    return Individuation(accuracy, f1, tuple(test.tolist()))


@cache
def split(n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Divide the indices of `n` texts, always in the same way, into those to learn from and those to test on."""
    require_extra("analysis", "telling personas apart")
    from sklearn.model_selection import train_test_split

    train, test = train_test_split(np.arange(n), test_size=TEST_SHARE, random_state=42)
    return np.asarray(train), np.asarray(test)


def macro_f1(labels: NDArray[Any], predictions: NDArray[Any]) -> float:
    """Compute the mean over labels of the F1 score, as `sklearn.metrics.f1_score` does with `average="macro"`.

    Args:
        labels: The true labels.
        predictions: The predicted ones.
    """
    scores: list[float] = []
    for label in np.unique(np.concatenate([labels, predictions])):
        is_label, is_predicted = labels == label, predictions == label
        scores.append(2 * float((is_label & is_predicted).sum()) / float(is_label.sum() + is_predicted.sum()))
    return statistics.fmean(scores)


def forest_predictions(known: FloatArray, labels: NDArray[Any], others: FloatArray) -> NDArray[Any]:
    """Predict labels as `RandomForestClassifier(random_state=0)` does, seven times faster for a few dozen texts.

    Around each of its hundred trees scikit-learn checks and copies parameters, which takes longer than the tree. Its
    trees are grown here without that, from the same random numbers; by itself, where its version grows them otherwise.

    Args:
        known: Vectors with a label, shape `(texts, dimensions)`.
        labels: Their labels.
        others: Vectors to label, shape `(others, dimensions)`.

    Returns:
        The most probable labels, shape `(others,)`.
    """
    try:
        return _grown(known, labels, others)
    except (AttributeError, ImportError, TypeError, ValueError):  # of another version of scikit-learn
        from sklearn.ensemble import RandomForestClassifier

        return cast("Any", RandomForestClassifier(N_TREES, random_state=0).fit(known, labels)).predict(others)


def _grown(known: FloatArray, labels: NDArray[Any], others: FloatArray) -> NDArray[Any]:
    """Do what `forest_predictions` does, with the parts of scikit-learn 1.9 that grow a tree."""
    trees, splitters, criteria = (
        cast("Any", import_module(f"sklearn.tree.{name}")) for name in ("_tree", "_splitter", "_criterion")
    )
    classes, codes = np.unique(labels, return_inverse=True)
    n, n_dimensions = known.shape
    features, new = (np.ascontiguousarray(one, dtype=np.float32) for one in (known, others))
    targets = codes.astype(np.float64).reshape(n, 1)
    n_classes = np.array([len(classes)], dtype=np.intp)
    n_tried = max(1, int(math.sqrt(n_dimensions)))
    rng = np.random.RandomState(0)
    shares = np.zeros((len(new), len(classes)))
    for seed in rng.randint(np.iinfo(np.int32).max, size=N_TREES):
        rng.seed(seed)
        weights = np.bincount(rng.randint(0, n, n, dtype=np.int32), minlength=n).astype(np.float64)
        rng.seed(seed)
        splitter = splitters.BestSplitter(criteria.Gini(1, n_classes), n_tried, 1, 0.0, rng, None)
        tree = trees.Tree(n_dimensions, n_classes, 1)
        builder = trees.DepthFirstTreeBuilder(splitter, 2, 1, 0.0, np.iinfo(np.int32).max, 0.0)
        builder.build(tree, features, targets, weights, None)
        shares += tree.predict(new)
    return classes[shares.argmax(axis=1)]


# -- summaries


@dataclass(frozen=True)
class PersonaScore:
    """One score of a persona."""

    mean: float
    """Mean over topics; NaN without any."""

    error: float
    """Standard error of the mean; NaN with fewer than two topics."""

    by_topic: Mapping[str, float]
    """The score on each topic that could be scored."""

    chance: float = CHANCE
    """Expected score by chance."""


@dataclass(frozen=True)
class Scores:
    """Scores of a corpus."""

    individuation: Mapping[str, PersonaScore]
    """Persona → how well its texts can be told from the default persona's: 0.5 by chance, 1 always."""

    exaggeration: Mapping[str, PersonaScore]
    """Persona → how far its texts lie from the default persona, 0, to the persona without a topic, 1."""

    by_topic: Mapping[str, float]
    """Topic → mean exaggeration over personas."""

    coverage: float
    """Share of the cells for which there is an exaggeration."""


def scores_of(corpus: Caricature) -> Scores:
    """Score a corpus.

    Args:
        corpus: Its measures.
    """
    exaggerations = corpus.exaggerations()
    scored = [topic for topic in corpus.topics if corpus.rules == "original" or topic != corpus.controls.topic]
    n_cells = len(corpus.personas) * len(scored)
    n_scores = sum(len(row) for name, row in exaggerations.items() if name != corpus.controls.persona)
    individuations = corpus.individuations()
    rows = {name: exaggerations.get(name, {}) for name in dict.fromkeys([*corpus.personas, *exaggerations])}
    return Scores(
        {name: _score({t: one.accuracy for t, one in row.items()}) for name, row in individuations.items()},
        {name: _score(row, _chance(corpus.controls, name, row)) for name, row in rows.items()},
        topic_means(exaggerations),
        n_scores / n_cells if n_cells else 0.0,
    )


def _score(by_topic: Mapping[str, float], chance: float = CHANCE) -> PersonaScore:
    values = list(by_topic.values())
    return PersonaScore(statistics.fmean(values) if values else math.nan, standard_error(values), by_topic, chance)


def _chance(controls: Controls, persona: str, topics: Collection[str]) -> float:
    """Return the expected exaggeration by chance; it is 0 for the default persona, and 1 on the default topic."""
    by_chance = [0.0 if persona == controls.persona else 1.0 if topic == controls.topic else CHANCE for topic in topics]
    return statistics.fmean(by_chance) if by_chance else CHANCE


def topic_means(scores: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Compute the mean over personas for each topic; cells without a score do not count."""
    topics = dict.fromkeys(topic for row in scores.values() for topic in row)
    return {topic: statistics.fmean(row[topic] for row in scores.values() if topic in row) for topic in topics}


def standard_error(values: Sequence[float]) -> float:
    """Compute the standard error of a mean; NaN with fewer than two values."""
    return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan


def transport_distance(first: Sequence[float], second: Sequence[float]) -> float:
    """Compute the Wasserstein-1 distance of two samples of scores: for samples of equal size, the mean absolute
    difference of the sorted scores.
    """
    return float(stats.wasserstein_distance(first, second))
