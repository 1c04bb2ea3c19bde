"""Instruments from tables: keys, scales, ranges of answers, and what cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from mesa_llm.errors import ConfigError
from mesa_llm.questionnaire import Instrument, read_instruments


def read(folder: Path, text: str) -> list[Instrument]:
    (folder / "own.csv").write_text(text)
    return read_instruments(folder / "own.csv")


@pytest.mark.parametrize(
    ("column", "cells"),
    [("key", ("+1", "-1")), ("key", ("", "R")), ("Keying", ("+", "−")), ("reverse_scored", ("no", "yes")),
     ("Reversed", ("0", "1")), ("reverse", ("FALSE", "TRUE")), ("reversed", ("", "x"))],
)  # fmt: skip
def test_keys_in_every_common_notation_reverse_their_items(tmp_path: Path, column: str, cells: tuple[str, str]) -> None:
    (own,) = read(tmp_path, f"item,text,{column},scale\n1,A,{cells[0]},S\n2,B,{cells[1]},S\n")
    assert own.score({1: 5, 2: 5}) == {"S": 3.0}


def test_a_table_of_texts_alone_is_scored_as_a_whole_and_its_defaults_are_said(tmp_path: Path, caplog) -> None:
    (own,) = read(tmp_path, "statement\nI talk.\nI sing.\n")
    assert (own.name, own.score({1: 2, 2: 5})) == ("own", {"Overall": 3.5})
    assert "answers are 1 to 5 (columns 'min', 'max' and 'labels' change that); no item is reversed" in caplog.text


def test_ranges_labels_modes_and_items_of_several_scales(tmp_path: Path, caplog) -> None:
    rows = "1,A,1,S,0,3,never;seldom;often;always,sum\n1,A,1,T,0,3,never;seldom;often;always,mean\n2,B,-1,T,0,3,"
    text = f"item,text,key,scale,min,max,labels,mode\n{rows}never;seldom;often;always,mean\n9,C,1,U,1,7,1=no;7=yes,\n"
    four, seven = read(tmp_path, text)
    assert four.score({1: 2, 2: 0}) == {"S": 2, "T": 2.5}
    assert four.instructions.endswith("from 0 (never) to 3 (always).")
    assert (four.name, seven.name, seven.scale.anchors) == ("own 0–3", "own 1–7", {1: "no", 7: "yes"})
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ("1,A,+2,S", r"line 2: found key '\+2'; expected \+1, or -1 or R"),
        ("1,A,1,S\n2,B,1,S\n1,C,1,S", "line 4: found item '1' again, as on line 2"),
        ("1,A,1,S\n1,A,1,S", "line 3: found item '1' again"),
        ("1,A,1,S\n1,A,-1,T", "line 3: found another key of item '1' than on line 2"),
        ("1,,1,S\n2,B,1,S", "line 2: found a blank one as the text of an item"),
        ("1,A,1", "line 2: found 3 cells; wanted 4"),
        (f"1,{'x' * 6000},1,S", "line 2: found 6,000 characters as the text"),
    ],
)
def test_items_that_cannot_be_used_are_named_by_line(tmp_path: Path, rows: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        read(tmp_path, f"item,text,key,scale\n{rows}\n")


@pytest.mark.parametrize(
    ("columns", "cells", "why"),
    [
        ("min,max", "5,1", "answers from 5 to 1; expected a lowest answer below the highest"),
        ("min,max", "one,5", "found low 'one'; expected a whole number"),
        ("min,max,labels", "1,5,a;b", "found 2 labels for answers from 1 to 5"),
        ("min,max,labels", "1,5,9=a;1=b", "found a label for 9; answers are 1 to 5"),
        ("mode", "median", "found mode 'median'; expected mean or sum"),
    ],
)
def test_answers_that_make_no_scale_are_refused(tmp_path: Path, columns: str, cells: str, why: str) -> None:
    with pytest.raises(ConfigError, match=f"line 2: .*{why}"):
        read(tmp_path, f"text,{columns}\nA,{cells}\n")


def test_a_table_without_texts_is_refused_with_its_columns(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"columns 'item', 'key'; a table of items needs a column 'text'"):
        read(tmp_path, "item,key\n1,1\n")
