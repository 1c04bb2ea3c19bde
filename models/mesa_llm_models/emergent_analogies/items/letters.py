"""Letter strings: generate, write, solve and score them.

Source:
    Webb, Holyoak & Lu (2023), Emergent analogical reasoning in large language models, Nature Human Behaviour 7.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from pathlib import Path
from typing import Literal

from mesa_llm_models.emergent_analogies.items.originals import LETTER_STRINGS, read_pickled
from mesa_llm_models.emergent_analogies.text import pattern_text, sentence_text

Tokens = tuple[str, ...]
"""Letters, numbers or words, in order."""

Format = Literal["lead", "bare", "sentence"]
"""Brackets after a line of introduction, brackets alone, or a sentence."""

ALPHABET: Tokens = tuple("abcdefghijklmnopqrstuvwxyz")

TRANSFORMATIONS = ("succ", "pred", "add_letter", "remove_redundant", "fix_alphabet", "sort")
"""Change from A to B: the last or first element moves on, one is added, a double removed, a wrong one corrected,
or two are put in order."""

GENERALISATIONS = ("larger_int", "longer_targ", "group", "interleaved", "letter2num", "reverse")
"""How the target differs from the source."""

CONCEPTS: Mapping[str, Tokens] = {
    "sizes": ("tiny", "small", "large", "huge"),
    "day": ("dawn", "noon", "dusk", "midnight"),
    "plant": ("seed", "sprout", "sapling", "tree"),
    "wealth": ("poor", "modest", "rich", "wealthy"),
    "settlements": ("hamlet", "village", "town", "city"),
}
"""Ordered lists of four real-world concepts, by name."""

REALWORLD = ("succ", "pred", "add_letter", "sort")
"""Transformations of the problems with ordered lists."""

KINDS = (
    *TRANSFORMATIONS,
    *GENERALISATIONS,
    *(f"2gen_split{number}" for number in range(1, 7)),
    *(f"3gen_split{number}" for number in range(1, 7)),
    *(f"realworld_{name}" for name in REALWORLD),
)
"""The 28 types."""


@dataclass(frozen=True)
class LetterString:
    """One problem: A is to B as C is to D."""

    kind: str
    """Its type."""

    source: tuple[Tokens, Tokens]
    """A and B."""

    target: Tokens
    """C."""

    key: Tokens
    """D, the answer."""

    n_generalisations: int = 0
    """Number of generalisations by which the target differs from the source."""

    @property
    def category(self) -> str:
        """Group of its type: `0_generalisations` … `3_generalisations`, or `real_world`."""
        return "real_world" if self.kind.startswith("realworld") else f"{self.n_generalisations}_generalisations"

    def text(self, form: Format = "lead") -> str:
        """Return the text of the problem, up to where the answer begins."""
        first, second = (" ".join(tokens) for tokens in self.source)
        target = " ".join(self.target)
        if form == "sentence":
            return sentence_text(first, second, target)
        return pattern_text(first, second, target, has_lead=form == "lead")


def is_right(text: str, key: Sequence[object], form: Format = "lead") -> bool:
    """Check a continuation against the key, as the original does; an empty text, on which that fails, is wrong.

    Args:
        text: The continuation. In brackets, one final `]` is removed; in sentences, one final full stop, one leading
            space, and then leading line breaks.
        key: The answer.
        form: How the problem was written.
    """
    if form == "sentence":
        text = text.removesuffix(".").removeprefix(" ").lstrip("\n")
    else:
        text = text.removesuffix("]")
    return text.split(" ") == [str(token) for token in key]


# -- making strings

Numbers = Sequence[int]


def transformed(name: str, run: Numbers, rng: random.Random | None = None) -> tuple[list[int], list[int]]:
    """Return both halves of a pair that shows a transformation.

    Args:
        name: One of `TRANSFORMATIONS`.
        run: Positions in the alphabet, evenly spaced.
        rng: Source of random draws: which element is doubled, wrong or swapped, and by what; None: one with seed 0.
    """
    rng = rng or random.Random(0)
    whole, size = list(run), len(run)
    match name:
        case "succ":
            return whole[:-1], [*whole[:-2], whole[-1]]
        case "pred":
            return whole[1:], [whole[0], *whole[2:]]
        case "add_letter":
            return whole[:-1], whole
        case "remove_redundant":
            index = rng.randrange(size)
            return [*whole[: index + 1], *whole[index:]], whole
        case "fix_alphabet":
            wrong = list(whole)
            wrong[rng.randrange(size)] = rng.choice([one for one in range(len(ALPHABET)) if one not in whole])
            return wrong, whole
        case _:
            swapped = list(whole)
            first, second = rng.sample(range(size), 2)
            swapped[first], swapped[second] = swapped[second], swapped[first]
            return swapped, whole


def dressed(numbers: Numbers, generalisations: Sequence[str]) -> Tokens:
    """Write positions in the alphabet as letters or numbers, with a distractor between them or all doubled.

    Args:
        numbers: Positions in the alphabet, from 0.
        generalisations: Names of `GENERALISATIONS`; those of the run itself are ignored here.
    """
    is_numeric = "letter2num" in generalisations
    tokens = [str(number + 1) if is_numeric else ALPHABET[number] for number in numbers]
    if "interleaved" in generalisations:
        tokens = [token for one in tokens for token in (one, "0" if is_numeric else "x")]
    if "group" in generalisations:
        tokens = [token for one in tokens for token in (one, one)]
    return tuple(tokens)


SOURCE_LENGTH, LONG = 5, 9
"""Length of the run of a source, and of a longer target."""


def make_letters(
    kind: str, n: int, rng: random.Random, concepts: Mapping[str, Tokens] = CONCEPTS
) -> list[LetterString]:
    """Make problems of one type.

    Args:
        kind: One of `KINDS`. Those of two and three generalisations are six blocks of the same sort.
        n: Number of problems.
        rng: Source of the draws.
        concepts: Ordered lists of four for the types of the real world.
    """
    problems: list[LetterString] = []
    while len(problems) < n:
        one = _make(kind, rng, concepts)
        if solve(one, concepts) == [one.key]:  # some swaps leave the direction open
            problems.append(one)
    return problems


def _make(kind: str, rng: random.Random, concepts: Mapping[str, Tokens]) -> LetterString:
    if kind.startswith("realworld_"):
        return _of_concepts(kind, rng, concepts)
    name = kind if kind in TRANSFORMATIONS else rng.choice(TRANSFORMATIONS)
    generalisations: tuple[str, ...] = (kind,) if kind in GENERALISATIONS else ()
    if kind[1:4] == "gen":
        generalisations = rng.choice(list(combinations(GENERALISATIONS, int(kind[0]))))
    start = rng.randrange(len(ALPHABET) - SOURCE_LENGTH + 1)
    first, second = transformed(name, range(start, start + SOURCE_LENGTH), rng)
    step = 2 if "larger_int" in generalisations else 1
    length = LONG if "longer_targ" in generalisations else SOURCE_LENGTH
    start = rng.randrange(len(ALPHABET) - step * (length - 1))
    run = [start + step * index for index in range(length)]
    third, fourth = transformed(name, run[::-1] if "reverse" in generalisations else run, rng)
    pair = dressed(first, ()), dressed(second, ())
    key = dressed(fourth, generalisations)
    return LetterString(kind, pair, dressed(third, generalisations), key, len(generalisations))


def _of_concepts(kind: str, rng: random.Random, concepts: Mapping[str, Tokens]) -> LetterString:
    name, words = kind.removeprefix("realworld_"), concepts[rng.choice(list(concepts))]
    start = rng.randrange(len(ALPHABET) - len(words) + 1)
    first, second = transformed(name, range(start, start + len(words)), rng)
    third, fourth = (tuple(words[index] for index in half) for half in transformed(name, range(len(words)), rng))
    return LetterString(kind, (dressed(first, ()), dressed(second, ())), third, fourth, 1)


# -- the original's problems


def load_letters(
    path: str | Path, allowed: frozenset[str] = frozenset({LETTER_STRINGS.sha256})
) -> dict[str, list[LetterString]]:
    """Load the original's problems from `all_prob.npz`; see `read_pickled`.

    Args:
        path: The file.
        allowed: SHA-256 digests of the files that may be opened.

    Returns:
        Type → its problems.

    Raises:
        ConfigError: If the file cannot be read, or has another digest.
    """
    kinds = read_pickled(path, allowed)
    return {kind: [_stored(kind, pairs) for pairs in kinds[kind]["prob"]] for kind in KINDS if kind in kinds}


def _stored(kind: str, pairs: Sequence[Sequence[Sequence[object]]]) -> LetterString:
    first, second, third, fourth = (tuple(map(str, half)) for pair in pairs for half in pair)
    n_generalisations = int(kind[0]) if kind[1:4] == "gen" else int(kind not in TRANSFORMATIONS)
    return LetterString(kind, (first, second), third, fourth, n_generalisations)


# -- solving


def solve(problem: LetterString, concepts: Mapping[str, Tokens] = CONCEPTS) -> list[Tokens]:
    """Find the answers from A, B and C alone, by the rules.

    Args:
        problem: The problem; its key is not used.
        concepts: Ordered lists for the types of the real world.

    Returns:
        All answers that the rules allow; empty if no rule fits. After a swap, both directions of sorting may fit.
    """
    halves = [[ALPHABET.index(token) for token in half] for half in problem.source]
    names = [name for name in TRANSFORMATIONS if halves[1] in _continued(name, halves[0], len(ALPHABET))]
    if not names:
        return []
    if problem.kind.startswith("realworld_"):
        words = next((words for words in concepts.values() if set(problem.target) <= set(words)), ())
        numbers = [words.index(token) for token in problem.target if words]
        return [tuple(words[index] for index in run) for run in _continued(names[0], numbers, len(words))]
    tokens, generalisations = list(problem.target), list[str]()
    if len(tokens) % 2 == 0 and tokens[::2] == tokens[1::2]:
        tokens, generalisations = tokens[::2], [*generalisations, "group"]
    if len(tokens) % 2 == 0 and set(tokens[1::2]) in ({"x"}, {"0"}):
        tokens, generalisations = tokens[::2], [*generalisations, "interleaved"]
    if tokens[0].isdigit():
        generalisations.append("letter2num")
    numbers = [int(token) - 1 if token.isdigit() else ALPHABET.index(token) for token in tokens]
    return [dressed(run, generalisations) for run in _continued(names[0], numbers, len(ALPHABET))]


def _continued(name: str, numbers: Numbers, size: int) -> list[list[int]]:
    """Apply a transformation to positions; empty if it does not apply to them, or leads out of range."""
    return [run for run in _SOLVERS[name](list(numbers)) if all(0 <= number < size for number in run)]


def _step(numbers: Numbers) -> int:
    """Return the spacing of an evenly spaced run, -2 to 2; 0 for any other."""
    steps = {second - first for first, second in pairwise(numbers)}
    return next(iter(steps)) if len(steps) == 1 and steps <= {-2, -1, 1, 2} else 0


def _succ(numbers: list[int]) -> list[list[int]]:
    return [[*numbers[:-1], numbers[-1] + step]] if (step := _step(numbers)) else []


def _pred(numbers: list[int]) -> list[list[int]]:
    return [[numbers[0] - step, *numbers[1:]]] if (step := _step(numbers)) else []


def _add(numbers: list[int]) -> list[list[int]]:
    return [[*numbers, numbers[-1] + step]] if (step := _step(numbers)) else []


def _remove(numbers: list[int]) -> list[list[int]]:
    doubled = [index for index in range(1, len(numbers)) if numbers[index] == numbers[index - 1]]
    runs = [[*numbers[:index], *numbers[index + 1 :]] for index in doubled[:1]]
    return [run for run in runs if _step(run)]


def _fix(numbers: list[int]) -> list[list[int]]:
    size = range(len(numbers))
    runs = [[numbers[anchor] + step * (at - anchor) for at in size] for step in (1, -1, 2, -2) for anchor in (0, 1)]
    return [run for run in runs if _n_different(run, numbers) == 1][:1]


def _sort(numbers: list[int]) -> list[list[int]]:
    runs = (sorted(numbers), sorted(numbers, reverse=True))
    return [run for run in runs if _n_different(run, numbers) == 2 and _step(run)]


def _n_different(first: Numbers, second: Numbers) -> int:
    return sum(one != other for one, other in zip(first, second, strict=True))


_SOLVERS: Mapping[str, Callable[[list[int]], list[list[int]]]] = {
    "succ": _succ,
    "pred": _pred,
    "add_letter": _add,
    "remove_redundant": _remove,
    "fix_alphabet": _fix,
    "sort": _sort,
}
