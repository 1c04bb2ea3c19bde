"""Contrasts between personas: what reacts is told from what does not, with probabilities and without."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mesa_llm.errors import ConfigError
from mesa_llm.experiments.persona import ContrastRow, contrast_line, load_contrasts, persona_contrast
from mesa_llm.registry import find_model
from mesa_llm.statistics import Estimate
from tests.faulty_server import FaultyServer
from tests.honest_reply import completion
from tests.llm.openai.test_probabilities import with_tokens

KIND = ("generous", "big-hearted", "love to gamble", "daredevil")
"""Words of the personas that should score high."""


def is_kind(body: dict[str, Any]) -> bool:
    return any(word in message["content"] for message in body["messages"] for word in KIND)


def reacting(body: dict[str, Any], number: int) -> Any:
    """Give or gamble with a probability of about 0.9 if the persona says so, else of 0.2."""
    share = 0.9 if is_kind(body) else 0.2
    share += 0.01 * (len(str(body["messages"])) % 3 - 1)
    options = json.dumps(body["response_format"])
    start, end, yes, no = '{"action": "', '", "arguments": {}}', "give", "keep"
    if "gamble" in options:
        start, end, yes, no = '{"answer": "', '"}', "gamble", "safe"
    return with_tokens(body, [(start, {start: 1.0}), (yes, {yes: share, no: 1 - share}), (end, {end: 1.0})])


def contrasted(behaviour: Any, *names: str, **options: Any) -> tuple[list[ContrastRow], FaultyServer]:
    with FaultyServer(behaviour) as server:
        return persona_contrast(f"tiny@{server.url}", names, **options), server


def test_who_reacts_to_the_persona_is_told_with_the_difference() -> None:
    rows, _ = contrasted(reacting, "giving", "risk")
    assert [(row.name, row.verdict, row.samples) for row in rows] == [("giving", "reacts", 0), ("risk", "reacts", 0)]
    assert [(row.low, row.high) for row in rows] == [(pytest.approx(0.2, abs=0.01), pytest.approx(0.9, abs=0.01))] * 2
    assert all(row.difference is not None and row.difference.n >= 4 for row in rows)


def test_without_probabilities_replies_are_sampled() -> None:
    def silent(body: dict[str, Any], number: int) -> Any:
        return completion(json.dumps({"answer": "gamble" if is_kind(body) else "safe"}), body=body)

    (row,), server = contrasted(silent, "risk", samples=2)
    assert (row.low, row.high, row.samples, row.off_list) == (0, 1, 2, None)
    assert server.last["temperature"] == 1.0


def test_chance_does_not_react_and_has_its_expectation() -> None:
    rows = persona_contrast("random", ["extraversion", "cooperation"])
    assert [(row.low, row.high, row.verdict) for row in rows] == [
        (3, 3, "does not react"),
        (0.5, 0.5, "does not react"),
    ]


def test_the_runs_can_be_kept_and_are_not_asked_twice(tmp_path: Path) -> None:
    with FaultyServer(reacting) as server:
        first = persona_contrast(f"tiny@{server.url}", ["risk"], folder=tmp_path)
        n_requests = server.count
        assert persona_contrast(f"tiny@{server.url}", ["risk"], folder=tmp_path) == first
        assert server.count == n_requests == 8


@pytest.mark.parametrize(
    ("value", "low", "high", "verdict"),
    [
        (0.5, 0.1, 0.9, "reacts"),
        (0.05, 0.01, 0.09, "hardly reacts"),
        (0.5, -0.1, 1.1, "cannot tell"),
        (0.3, None, None, "cannot tell"),
        (0.01, -0.03, 0.05, "does not react"),
        (-0.5, -0.9, -0.1, "reacts the wrong way"),
    ],
)
def test_verdict_needs_an_interval_without_zero_and_a_relevant_difference(
    value: float, low: float | None, high: float | None, verdict: str
) -> None:
    found = Estimate(value, low, high, 8)
    row = ContrastRow(name="x", low=0.1, high=0.6, difference=found, range=(0, 1), off_list=None, n_failed=0, samples=2)
    assert row.verdict == verdict
    assert contrast_line(row).endswith(verdict)


def test_the_range_by_wording_stands_beside_every_contrast() -> None:
    rows, _ = contrasted(reacting, "giving")
    assert len(rows[0].by_wording) == 2
    assert rows[0].by_wording[1] == pytest.approx(0.7, abs=0.02)
    assert rows[0].wording_range in contrast_line(rows[0])
    assert rows[0].wording_range.endswith(" by wording")


def test_contrasts_name_a_model_and_equal_numbers_of_wordings() -> None:
    for contrast in load_contrasts():
        fields = find_model(contrast.model).load().scenario_class.fields
        assert all(set(parameters) <= set(fields) for parameters in contrast.parameters)
        assert len(contrast.high) == len(contrast.low) > 1


def test_what_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"no contrast 'extroversion'.*extraversion"):
        load_contrasts(["extroversion"])
    with pytest.raises(ConfigError, match="no language model"):
        persona_contrast("rule")
