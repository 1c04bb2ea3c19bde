"""The paragraph of an audit for the methods section of a paper."""

from __future__ import annotations

from collections.abc import Sequence

from mesa_llm.experiments.audits.claim_findings import SHOWN_WORDS, ClaimFindings
from mesa_llm.statistics import with_interval
from mesa_llm.text import counted, figure_text

SCORINGS = {
    "replies": "A decision is the choice in the reply",
    "probabilities": "Decisions were scored by the probabilities that the language model gives to all choices",
}
"""Scoring → what a decision is."""

_DIRECTION = (
    "A claim about a direction counts as shown if a two-sided t-test over runs rejects that its effect is 0 and the "
    "mean effect lies on the expected side and is at least as large as the smallest effect of interest; as reversed if "
    "that test rejects and the mean lies on the other side; as absent if two one-sided t-tests show the effect to be "
    "smaller than the smallest effect of interest; and otherwise as undecided."
)

_RANGE = (
    "A claim about a range counts as shown if two one-sided t-tests over runs show the effect to lie within it, as "
    "absent if a two-sided t-test shows it to lie outside, and otherwise as undecided."
)

_SIZE = (
    "Each perturbation was run with the seeds of the baseline, and effects were compared in pairs of runs with equal "
    "seeds. The size of an effect counts as stable under a perturbation if two one-sided paired t-tests show its "
    "difference from the baseline to be smaller than the smallest effect of interest (and, where only a few pairs "
    "differ from all others, as many such pairs as cannot be excluded would not matter); as sensitive if the interval "
    "of the difference that belongs to these tests lies beyond the smallest effect of interest and the paired t-test, "
    "corrected by Holm over {family}, rejects that there is no difference, or if the claim is reversed; and otherwise "
    "as undecided. Whether a claim is shown is tested in each condition on its own, without a correction for the "
    "number of conditions. Intervals of means are 95 % intervals."
)


def methods_text(
    runs: str, design: str, claims: Sequence[ClaimFindings], notes: Sequence[str], scoring: str = "replies"
) -> str:
    """Write the paragraph.

    Args:
        runs: What was run, in sentences.
        design: At which numbers of seeds, and at which levels, tests were made, in sentences.
        claims: The claims.
        notes: What a reader has to know beside: seal, coverage, what was not run, awareness, failures.
        scoring: What decisions were scored by.
    """
    n_tests = sum(len(one.perturbations) for one in claims)
    family = f"the {counted(n_tests, 'pair of a claim and a perturbation', 'pairs of a claim and a perturbation')}"
    kinds = {one.claim.expectation.is_equivalence for one in claims if one.is_claim}
    rules = [text for is_range, text in ((False, _DIRECTION), (True, _RANGE)) if is_range in kinds]
    parts = [runs, f"{SCORINGS.get(scoring, scoring)}.", design, *rules, _SIZE.format(family=family)]
    return " ".join(filter(None, [*parts, *map(_claim_text, claims), *notes]))


def _claim_text(one: ClaimFindings) -> str:
    """Return what was claimed, and found, in sentences."""
    claim, smallest = one.claim, figure_text(one.claim.smallest_effect)
    controls = [
        f"{row.name} {with_interval(row.effect)}" + (f", {SHOWN_WORDS[row.shown]}" if one.is_claim else "")
        for row in one.controls
    ]
    beside = f" Controls, under which it need not hold: {'; '.join(controls)}." if controls else ""
    return (
        f"Claim “{claim.name}”: {claim.text}; smallest effect of interest {smallest}, kind {claim.kind}. Effect in the "
        f"model as it is: {with_interval(one.baseline)} ({one.baseline.n} {one.baseline.unit}). "
        f"{one.verdict}{beside}"
    )
