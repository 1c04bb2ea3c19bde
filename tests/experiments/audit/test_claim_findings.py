"""What an audit says of one claim: where it is shown, and where the size of its effect changes."""

from __future__ import annotations

from typing import Any

import pytest

from mesa_llm.experiments.audits import claim_from
from mesa_llm.experiments.audits.claim_findings import ClaimFindings, ControlRow, PerturbationRow
from mesa_llm.experiments.audits.dimensions import perturbation
from mesa_llm.experiments.audits.verdict import Change, Shown, Stability
from mesa_llm.statistics import Estimate
from mesa_llm_models.classics.prisoners_dilemma.model import DilemmaModel

SETTINGS = [{"noise": 0.0}, {"noise": 0.3}]
DIRECTION = {"between": SETTINGS, "expects": "first is greater"}
RANGE = {"expects": "value in [0.2, 0.6]"}


def row(name: str, value: float, shown: Shown, change: Change, **changes: Any) -> PerturbationRow:
    """Return a perturbation with its effect and verdicts."""
    pairs = "pairs of runs"
    apart = Estimate(value - 0.4, value - 0.45, value - 0.35, 10, pairs)
    effect = Estimate(value, value - 0.05, value + 0.05, 10)
    result = Stability(effect, apart, apart.low, apart.high, 0.9, 0.01, 0.02, shown, change, shown == "reversed")
    return PerturbationRow(perturbation("format", name), result, {}, None, **changes)


def found(fields: Any, shown: Shown, *rows: PerturbationRow, **changes: Any) -> ClaimFindings:
    """Return what was found of a claim whose effect is 0.4."""
    claim = claim_from("own", {"measure": "cooperation", "smallest_effect": 0.1, **fields}, DilemmaModel)
    own = Estimate(0.4, 0.38, 0.42, 10)
    return ClaimFindings(claim, own, shown, {}, rows, changes.get("controls", []), [], 1)


STRONGER = row("list", 0.85, "shown", "sensitive")
SAME = row("a table", 0.41, "shown", "stable")
UNCLEAR = row("white space", 0.2, "not shown", "undecided")
OPPOSITE = row("JSON", -0.4, "reversed", "sensitive")
GONE = row("prose", 0.01, "absent", "sensitive")


@pytest.mark.parametrize(
    ("fields", "shown", "rows", "claim", "size"),
    [
        (
            DIRECTION,
            "shown",
            [STRONGER, SAME],
            "The claim is shown by the model as it is; of 2 changes, it is shown under 2.",
            "Its size, 0.4 in the model as it is, changes under 1 (to 0.85 under list) and stays within ±0.1 under 1.",
        ),
        (
            DIRECTION,
            "shown",
            [STRONGER, SAME, UNCLEAR, GONE],
            "The claim is shown by the model as it is; of 4 changes, it is shown under 2, absent under 1 (prose) and "
            "undecided under 1 (white space).",
            "Its size, 0.4 in the model as it is, changes under 2 (to 0.85 under list, to 0.01 under prose), stays "
            "within ±0.1 under 1 and is undecided under 1 (white space).",
        ),
        (
            DIRECTION,
            "shown",
            [OPPOSITE, SAME],
            "REVERSED under JSON: The claim is shown by the model as it is; of 2 changes, it is reversed under 1 "
            "(JSON) and shown under 1.",
            "Its size, 0.4 in the model as it is, changes under 1 (to -0.4 under JSON) and stays within ±0.1 under 1.",
        ),
        (
            DIRECTION,
            "reversed",
            [OPPOSITE],
            "REVERSED in the model as it is: The claim is reversed in the model as it is (the opposite is shown); of 1 "
            "change, it is reversed under 1 (JSON).",
            "Its size, 0.4 in the model as it is, changes under 1 (to -0.4 under JSON).",
        ),
        (
            DIRECTION,
            "absent",
            [],
            "The claim is absent in the model as it is (smaller than 0.1).",
            "",
        ),
        (
            RANGE,
            "absent",
            [],
            "The claim is absent in the model as it is (outside of what is expected).",
            "",
        ),
        (
            {},
            "no claim",
            [row("list", 0.85, "no claim", "sensitive")],
            "No direction or range of this level is claimed, so nothing is shown or refuted.",
            "Its value, 0.4 in the model as it is, changes under 1 (to 0.85 under list).",
        ),
    ],
)
def test_a_verdict_says_where_the_claim_is_shown_and_where_its_size_changes(
    fields: Any, shown: Shown, rows: list[PerturbationRow], claim: str, size: str
) -> None:
    one = found(fields, shown, *rows)
    assert one.claim_text == claim
    assert one.size_text == size
    assert one.verdict.startswith(f"{claim} {size}".strip())


def test_tables_hold_pairs_what_is_shown_and_the_verdict_on_the_size() -> None:
    control = ControlRow("no persona", Estimate(0, -0.1, 0.1, 9), Estimate(-0.4, -0.5, -0.3, 9), "absent", None)
    changes, controls = found(DIRECTION, "shown", STRONGER, controls=[control]).tables()
    assert changes.head[2:11] == [
        *("n", "effect", "low", "high", "shown", "difference", "difference low", "difference high", "adjusted p"),
    ]
    assert (changes.rows[0]["n"], changes.rows[0]["shown"], changes.rows[0]["size"]) == (10, "shown", "sensitive")
    assert (controls.rows[0]["n"], controls.rows[0]["shown"], controls.rows[0]["difference low"]) == (9, "absent", -0.5)


def test_nothing_is_shown_of_a_level() -> None:
    control = ControlRow("no persona", Estimate(0, -0.1, 0.1, 9), Estimate(-0.4, -0.5, -0.3, 9), "no claim", None)
    one = found({}, "no claim", row("list", 0.85, "no claim", "sensitive"), controls=[control])
    assert all("shown" not in table.head for table in one.tables())
    assert one.warnings == []


@pytest.mark.parametrize(
    ("apart", "change", "is_said"),
    [
        (Estimate(0.01, -0.02, 0.03, 10), "sensitive", True),
        (Estimate(0.3, 0.2, 0.4, 10), "sensitive", False),
        (Estimate(0.01, -0.02, 0.03, 10), "stable", False),
        (None, "sensitive", False),
    ],
)
def test_a_total_that_grows_with_the_agents_is_said_to_be_arithmetic(
    apart: Estimate | None, change: Change, *, is_said: bool
) -> None:
    twice = row("twice as many agents", 0.8, "shown", change, per_agent=apart)
    assert bool([note for note in found(DIRECTION, "shown", twice).warnings if "a total" in note]) == is_said
