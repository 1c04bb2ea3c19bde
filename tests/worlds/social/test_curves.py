"""Curves of how posts spread, real and simulated."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from mesa_llm.errors import ConfigError
from mesa_llm_models.social.world import SpreadCurves, read_curves

DATA = os.environ.get("MESA_LLM_DATA")
LISTS: dict[str, Any] = {
    "scale": [1, 3, 4],
    "scale_time": [0, 1, 4],
    "depth": [0, 1],
    "depth_time": [0, 1],
    "max_breadth": [0, 2, 3],
    "max_breadth_time": [0, 1, 4],
}


def curves_file(folder: Path, **changes: Any) -> Path:
    """Write the lists, changed, as OASIS does."""
    path = folder / "curves.json"
    path.write_text(json.dumps(LISTS | changes), encoding="utf-8")
    return path


@pytest.mark.skipif(not DATA, reason="MESA_LLM_DATA names no folder with the original files")
def test_the_real_curve_of_oasis_is_read_whole() -> None:
    curves = read_curves(Path(DATA or ".") / "oasis" / "False_Business_0_real_propagation.json")
    assert (len(curves), curves.scale[:3].tolist(), curves.scale[-1]) == (7360, [1, 11, 15], 104)
    assert [column.tolist()[-1] for column in (curves.scale, curves.depth, curves.max_breadth)] == [104, 2, 101]


def test_minutes_left_out_have_the_value_before(tmp_path: Path) -> None:
    curves = read_curves(curves_file(tmp_path))
    assert curves.scale.tolist() == [1, 3, 3, 3, 4]
    assert curves.depth.tolist() == [0, 1, 1, 1, 1]
    assert curves.until(7).max_breadth.tolist() == [0, 2, 2, 2, 3, 3, 3]
    assert curves.until(2).scale.tolist() == [1, 3]


def test_steps_become_minutes() -> None:
    curves = SpreadCurves.of_steps((1, 4, 6), (0, 1, 2), (1, 3, 3), step_minutes=3)
    assert curves.scale.tolist() == [1, 1, 1, 4, 4, 4, 6]
    assert curves.max_breadth.tolist() == [0, 0, 0, 3, 3, 3, 3]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"scale": None}, "found nothing under 'scale'"),
        ({"depth": []}, r"found \[\] under 'depth'"),
        ({"depth": [0, 1, 2]}, "'depth' has 3 values for 2 minutes in 'depth_time'"),
        ({"depth_time": [1, 2]}, "'depth_time', entry 0: found 1; expected minute 0"),
        ({"depth_time": [0, 0]}, "'depth_time', entry 1: found 0; expected a minute after"),
        ({"scale": [1, 3, 2]}, "'scale', entry 2: found 2; expected a number of 3 or more"),
        ({"scale": [1, "3", 4]}, "'scale', entry 1: found '3'"),
        ({"depth_time": [0, 10**9]}, "'depth_time', entry 1: found 1000000000"),
    ],
)
def test_broken_curves_name_list_and_entry(tmp_path: Path, changes: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        read_curves(curves_file(tmp_path, **changes))
