"""Claims: read from a file, checked against the model that they are about."""

from __future__ import annotations

from pathlib import Path

import pytest

from mesa_llm import ConfigError
from mesa_llm.experiments.audits.claim import claim_from, compared, level_of, read_claims
from mesa_llm_models.classics.prisoners_dilemma.model import DilemmaModel

RETALIATION = """
[claims.retaliation]
measure = "guests_cooperation"
between = [{noise = 0.0}, {noise = 0.2, design = {memory = "window"}}]
expects = "first is greater"
smallest_effect = 0.05
kind = "mechanism"
words = ["axelrod"]
"""


def written(folder: Path, text: str) -> Path:
    """Write a file of claims."""
    file = folder / "claims.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_a_claim_is_read_with_its_two_settings(tmp_path: Path) -> None:
    (claim,) = read_claims(written(tmp_path, RETALIATION), DilemmaModel)
    assert claim.text == (
        "guests_cooperation, noise=0.0 (first) against noise=0.2, memory=window (second): first is greater"
    )
    assert compared([claim]) == {"parameters.noise", "design.memory"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('expects = "first is greater"', 'expects = "more"'), "expects = 'more': wanted one of first is greater"),
        (("noise = 0.0", "noies = 0.0"), r"DilemmaModel has no parameter 'noies'; did you mean noise\?"),
        (("noise = 0.0", "noise = 7"), "noise"),
        (("smallest_effect = 0.05", "smallest_effect = 0"), "smallest_effect"),
        (('measure = "guests_cooperation"', ""), "measure"),
        (("between = [{noise = 0.0}, ", "between = ["), "between"),
        (("[claims.retaliation]", "[retaliation]"), r"has no claims; write each as a table \[claims.NAME\]"),
        (("= 0.05", "= = 0.05"), "the claims cannot be read"),
    ],
)
def test_a_faulty_claim_says_what_is_wrong(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_claims(written(tmp_path, RETALIATION.replace(*change)), DilemmaModel)


def test_a_direction_needs_two_settings() -> None:
    with pytest.raises(ConfigError, match="needs two settings to compare"):
        claim_from("one", {"measure": "cooperation", "expects": "no difference", "smallest_effect": 1}, DilemmaModel)


def test_measure_may_be_a_result_entry_and_an_unknown_one_lists_choices() -> None:
    row = {"cooperation": 0.5, "scores": {"coin": 2.0}, "digest": "abc"}
    assert level_of(DilemmaModel, "scores.coin", 0.1).value_in(row) == 2
    with pytest.raises(ConfigError, match="no result is called 'score'; the runs have: cooperation, scores"):
        level_of(DilemmaModel, "score", 0.1).value_in(row)
    with pytest.raises(ConfigError, match="not a number"):
        level_of(DilemmaModel, "digest", 0.1).value_in(row)
