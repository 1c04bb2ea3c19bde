"""Every section of every golden file of a world is read by a test module here, listed with why not, or warned of."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from tests.golden.reading import Recorded, UnreadKeys, decoded, golden, unlisted, unread, warn_of_unread

READ = {
    "auctionarena": {"scenarios", "trueskill"},
    "econagent": {"scenarios", "unit"},
    "sauce": {
        "sync",
        "batch",
        "async",
        "fine_tuned_should_speak",
        "registered_person_classes",
        "gpt35_roles",
    },
    "stockagent": {"scenarios", "unit"},
    "cognitive_biases": {
        "source",
        "bias_specs",
        "score_grids",
        "aggregate_cases",
        "unshuffle_cases",
        "out_of_range_decisions",
        "flip_by_seed",
        "extraction_cases",
        "insertion_trim_cases",
        "format_case",
        "sampling_cases",
        "conservatism_flipped_grid_as_in_2024_2025_publication",
        "uniform_random_responder_expectation",
    },
    "emergent_analogies": {
        "source",
        "matrix_seeded_problems",
        "matrix_synthetic_responses",
        "letterstring_seeded_problems",
        "letterstring_synthetic_responses",
    },
    "emotionbench": {
        "source",
        "scale_definitions",
        "situation_counts",
        "scoring_cases",
        "shuffle_cases",
        "parse_cases",
        "end_to_end_cases",
    },
    "psychobench": {
        "scale_definitions",
        "scoring_cases",
        "shuffle_cases",
        "aggregate_cases",
        "stats_cases",
        "parse_cases",
    },
    "compost": {
        "embedding_rule",
        "corpus_cases",
        "exaggeration_micro_cases",
        "log_odds_cases",
        "individuation_micro_cases",
        "sorted_pair_distance_cases",
    },
    "sotopia": {
        "dyadic",
        "main",
        "benchmark_stats",
        "loader",
        "minmax_normalisation",
    },
    "simswarm": {
        "belief_update",
        "apply_belief",
        "stance_vader",
        "belief_bands",
        "confidence_bands",
        "bridge_format",
        "bridge_digest",
        "bridge_scheduled",
        "economic_env",
        "engine_runs",
        "amm_single",
        "amm_sequences",
        "floor_shares",
        "slug",
        "slug_collision",
        "market_env",
        "demo_trades",
        "social_env",
        "extractors",
        "extract_entities",
        "fallback_entities",
        "story_week_range",
        "sweep",
        "parse_tool_calls",
    },
}
"""Golden file → its sections that the modules here read, in the order of the modules."""

NOT_COMPARED = {
    "_about": "prose about the file",
    "source": "which commit and versions the recordings come from",
    "meta": "where the recordings come from, and how to read them",
    "unregistered": "classes that no configuration of SAUCE's can name",
    "inner_scheduler_mafia_import": "a module of SAUCE's that cannot be imported",
    "demo_stats": "counts over demo runs whose logs are not recorded",
    "story_classify": "reports take stances from beliefs or tone; the keyword lists belong to SimSwarm",
    "story_signals": "as story_classify",
    "keyword_sentiment": "as story_classify",
}
"""Sections that no module reads → why."""


@pytest.mark.parametrize("task", READ)
def test_every_section_is_read_or_listed_or_warned_of(task: str) -> None:
    if left := golden(task).keys() - NOT_COMPARED.keys() - READ[task]:
        warnings.warn(f"sections neither read nor listed in NOT_COMPARED: {sorted(left)}", UnreadKeys, stacklevel=1)


@pytest.mark.parametrize("task", READ)
def test_a_key_that_nobody_reads_is_found(task: str) -> None:
    cases: Recorded = golden(task)
    cases.read_all()
    assert unread(cases) == set()
    name = next(iter(cases))
    cases[name] = decoded([{"known": {"b": 1}, "new": 2}])
    assert unlisted(cases, {}) == [f"{name}.known", f"{name}.new"]
    assert cases[name][0]["known"] == {"b": 1}
    assert unlisted(cases, {}) == [f"{name}.new"]
    with pytest.warns(UnreadKeys, match=r"new"):
        warn_of_unread(cases, {})
    assert unlisted(cases, {"*.new": "a reason"}) == []


@pytest.mark.parametrize("copied", [dict, lambda case: {**case}, lambda case: case | {}], ids=["dict", "**", "|"])
def test_a_copy_reads_what_it_copies_and_no_deeper(copied: Any) -> None:
    case = decoded({"a": {"b": 1}})
    copied(case)
    assert unread(case) == {"a.b"}
