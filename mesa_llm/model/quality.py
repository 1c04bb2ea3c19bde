"""Data quality of a run: what was refused, declined, left out or not meant, to be read beside its scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from mesa_llm.world import Questioner

HIGH = 0.05
"""Share from which a report says in a sentence that scores are to be read with care."""

MAX_NAMED = 3
"""Maximum number of actions that are named with their refusals."""


class Rate(NamedTuple):
    """How often something happened."""

    n: int
    """Number of times."""

    of: int
    """Number of times it could have happened."""

    @property
    def share(self) -> float:
        """Share, from 0 to 1; 0 if it could not happen."""
        return self.n / self.of if self.of else 0.0

    def plus(self, n: int, of: int) -> Rate:
        """Return the rate with further counts."""
        return Rate(self.n + n, self.of + of)


Quality = Mapping[str, Rate]
"""Kind → how often."""

KINDS = {
    "failed": "{n} of {of} decisions failed",
    "reprompted": "{n} of {of} decisions took a second request",
    "parsed_leniently": "{n} of {of} decisions were read with repairs",
    "refused": "{n} of {of} actions and answers were refused by the world",
    "declined": "{n} of {of} decisions were declined by the language model",
    "filtered": "{n} of {of} decisions were stopped by the provider's filter (these are among the declined)",
    "by_surrogate": "{n} of {of} decisions were made by a surrogate of a language model",
    "straight_lined": "{n} of {of} questionnaires with reversed items hold one number throughout",
    "items_missing": "{n} of {of} items have no answer",
    "items_unparsable": "{n} of {of} answers to items could not be read",
    "items_off_scale": "{n} of {of} answers to items are not on the scale",
    "judge_unchecked": "{n} of {of} judgements were not checked against people's labels (mesa-llm agreement does so)",
    "judge_unreliable": "{n} of {of} judgements are by a judge that agrees too little with people (alpha below 0.667)",
    "judge_tentative": "{n} of {of} judgements are by a judge that agrees with people to some extent (alpha below 0.8)",
    "judge_reliable": "{n} of {of} judgements are by a judge that agrees with people (alpha of 0.8 or more)",
    "judged_by_rule": "{n} of {of} judgements were made by a rule, not by a language model or a person",
    "not_asked": "{n} of {of} decisions needed no request, as only one was possible",
}
"""Kind of `Quality` → its description. Kinds of one's own are described by their name."""

HARMLESS = frozenset({"not_asked", "parsed_leniently", "judge_reliable", "judged_by_rule"})
"""Kinds that say nothing against the scores."""


def quality_of(model: Any) -> dict[str, Rate]:
    """Return the data quality of a run so far, by kind; `KINDS` has the kinds that all models share.

    Failures of people who did not answer in time are failed decisions, too.

    Args:
        model: The model, an `LLMModel`.
    """
    engine = model.engine
    counts = {
        "failed": model.usage.failures,
        **{
            name: getattr(engine, name)
            for name in ("reprompted", "parsed_leniently", "declined", "filtered", "not_asked")
        },
    }
    quality = {name: Rate(n, engine.decisions) for name, n in counts.items()}
    if engine.by_surrogate:
        quality["by_surrogate"] = Rate(engine.by_surrogate, engine.decisions)
    quality["refused"] = Rate(model.n_refused, model.n_outcomes)
    for world in model.worlds:
        if isinstance(world, Questioner):
            for name, (n, of) in world.quality().items():
                quality[name] = quality.get(name, Rate(0, 0)).plus(n, of)
    quality |= {name: Rate(n, of) for name, (n, of) in model.judgements.rates().items()}
    return {name: quality[name] for name in (*(kind for kind in KINDS if kind in quality), *quality)}


def quality_texts(quality: Quality, refusals: Mapping[str, int] | None = None) -> list[str]:
    """Describe everything that happened at least once, the harmless last.

    Args:
        quality: Data quality of one run or of several.
        refusals: Number of refusals by action, the most frequent first; None: not known.
    """
    texts: list[str] = []
    for name, rate in quality.items():
        if not rate.n:
            continue
        text = KINDS.get(name, f"{{n}} of {{of}}: {name.replace('_', ' ')}").format(n=rate.n, of=rate.of)
        if name == "refused" and refusals:
            named = [f"{action} {n}" for action, n in list(refusals.items())[:MAX_NAMED]]
            more = [f"{len(refusals) - MAX_NAMED} more"] if len(refusals) > MAX_NAMED else []
            text += f" ({', '.join(named + more)})"
        texts.append(text)
    return texts


def quality_warning(quality: Quality) -> str:
    """Say in a sentence what happened more often than `HIGH`; empty if nothing did."""
    high = {name: rate for name, rate in quality.items() if name not in HARMLESS and rate.share > HIGH}
    if not high:
        return ""
    texts = quality_texts(high)
    shares = [f"{text} ({rate.share:.0%})" for text, rate in zip(texts, high.values(), strict=True)]
    return f"Read the results with care: {'; '.join(shares)}."


def judge_text(model: Any) -> str:
    """Say whether the judges of a run were checked against people's labels; empty if nobody judged.

    Args:
        model: The model, an `LLMModel`.
    """
    return "; ".join(quality_texts({name: Rate(n, of) for name, (n, of) in model.judgements.rates().items()}))


def total_quality(qualities: Iterable[Mapping[str, Sequence[int]]]) -> dict[str, Rate]:
    """Add up the data quality of several runs, also as JSON holds it."""
    total: dict[str, Rate] = {}
    for quality in qualities:
        for name, (n, of) in quality.items():
            total[name] = total.get(name, Rate(0, 0)).plus(n, of)
    return total
