"""Parameters of a model are checked before anything is built."""

import math

import pytest

from mesa_llm.errors import ConfigError
from mesa_llm.options import within


@pytest.mark.parametrize("value", [0, 0.5, 1])
def test_a_parameter_in_its_range_is_given_back(value) -> None:
    assert within("share", value, 0, 1) == value


@pytest.mark.parametrize("value", [-1, math.nan, math.inf, -math.inf])
def test_a_parameter_out_of_its_range_is_refused_by_name(value) -> None:
    with pytest.raises(ConfigError, match="wage must be 0 or more, got"):
        within("wage", value, 0)
