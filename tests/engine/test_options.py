"""Options are declared once: keyword arguments, their types, `mesa-llm.toml` and the command line agree."""

from __future__ import annotations

import inspect
from typing import get_args, get_type_hints

import pytest

from mesa_llm import Access, ConfigError, Endpoint
from mesa_llm.engine.access import EngineOptions
from mesa_llm.engine.options import AccessKeywords, AccessOptions, RunOptions, checked_options, option
from mesa_llm.engine.plain import connect
from mesa_llm.viz.session.run_settings import REASONING, SCORING
from tests.pot import PotModel


def test_the_keyword_arguments_that_type_checkers_see_are_the_options() -> None:
    assert list(AccessKeywords.__annotations__) == list(AccessOptions.model_fields)
    model = {*inspect.signature(PotModel).parameters}
    assert {*RunOptions.model_fields} <= model
    assert {*EngineOptions.__annotations__} - {"access", "named"} <= {*RunOptions.model_fields}
    assert {"replay", "retry_failures", "ask_again"} <= {*inspect.signature(connect).parameters}


def test_the_signature_of_a_model_shows_the_defaults() -> None:
    parameters = inspect.signature(PotModel).parameters
    assert {name: parameters[name].default for name in RunOptions.model_fields} == {
        name: option(name).default for name in RunOptions.model_fields
    }


@pytest.mark.parametrize("name", ["concurrency", "requests_per_min", "tokens_per_min", "timeout_s"])
def test_an_endpoint_has_limits_of_the_same_range_as_all_models(name: str) -> None:
    own, shared = (get_type_hints(kind, include_extras=True)[name] for kind in (Endpoint, AccessOptions))
    assert shared in (own, get_args(own)[0])


def test_help_on_an_access_shows_its_options() -> None:
    parameters = inspect.signature(Access).parameters
    assert list(parameters) == ["purse", *AccessOptions.model_fields]
    assert parameters["concurrency"].default == option("concurrency").default


def test_every_option_says_what_it_means() -> None:
    assert all(option(name).meaning.endswith(".") for name in RunOptions.model_fields)
    assert [option(name).minimum for name in ("concurrency", "loading_timeout_s", "api_base")] == [1, 0, None]


def test_a_page_offers_the_choices_of_an_option() -> None:
    assert tuple(REASONING) == ("", *option("reasoning").choices)
    assert tuple(SCORING) == ("", *option("scoring").choices)


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"attempts": 0}, "attempts: .* greater than or equal to 1, got 0"),
        ({"concurrency": 0}, "concurrency: .* greater than or equal to 1, got 0"),
        ({"tokens_per_min": -1}, "tokens_per_min: .* greater than or equal to 1, got -1"),
        ({"loading_timeout_s": float("inf")}, "loading_timeout_s: .* finite"),
        ({"timeout_s": 0}, "timeout_s: .* greater than 0"),
        ({"requests_per_min": float("nan")}, "requests_per_min: .* finite"),
        ({"max_calls": 0}, "max_calls: .* greater than 0"),
        ({"attempt": 3}, "unknown option: attempt; did you mean attempts"),
        ({"api_key": ["secret"]}, "api_key: input should be a valid string$"),
    ],
)
def test_an_option_that_cannot_be_is_refused_by_name(options, fault) -> None:
    with pytest.raises(ConfigError, match=fault):
        Access(**options)


def test_none_stands_for_the_default_and_whole_floats_for_whole_numbers() -> None:
    options = checked_options(AccessOptions, {"concurrency": None, "max_tokens": 1e6})
    assert (options.concurrency, options.max_tokens) == (64, 1_000_000)
