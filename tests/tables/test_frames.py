"""Tables in memory, and those of statistics packages: nothing is dropped unseen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mesa_llm.errors import ConfigError
from mesa_llm.population import from_table
from mesa_llm.tables import read_table

PEOPLE = pd.DataFrame({"name": ["Ann", "Bo"], "persona": ["A nurse.", "A baker."], "age": [41, 35]})


def rows(table: Any) -> list[Any]:
    return [row for _, row in read_table(table)]


@pytest.mark.parametrize("index", ["name", ["name", "age"], ["age"]])
def test_a_named_index_is_a_column(index: Any) -> None:
    assert sorted(rows(PEOPLE.set_index(index))[0].items()) == sorted(rows(PEOPLE)[0].items())


def test_an_index_without_a_name_is_said_to_be_left_out(caplog: pytest.LogCaptureFixture) -> None:
    assert rows(PEOPLE.set_index("name").rename_axis(None))[0] == {"persona": "A nurse.", "age": 41}
    assert "the index has no name, and is left out (it begins with 'Ann')" in caplog.text
    caplog.clear()
    assert rows(PEOPLE[PEOPLE["age"] < 40]) == [{"name": "Bo", "persona": "A baker.", "age": 35}]
    assert not caplog.records


@pytest.mark.parametrize(
    ("column", "cell"),
    [
        (pd.Series([1.0, np.nan]), 1),
        (pd.Series([1, pd.NA], dtype="Int64"), 1),
        (pd.Series(pd.Categorical(["x", None])), "x"),
        (pd.to_datetime(pd.Series(["2024-01-02", None])), "2024-01-02"),
        (pd.to_datetime(pd.Series(["2024-01-02 10:30", None])), "2024-01-02T10:30:00"),
        (pd.Series(["é".encode(), None]), "é"),
        (pd.Series([0.1, None], dtype="float32"), 0.1),
        (pd.Series([True, None]), True),
        (pd.Series([["a", "b"], None]), ["a", "b"]),
        (pd.Series([np.array([1, 2]), None], dtype=object), [1, 2]),
    ],
)
def test_cells_of_every_type_are_what_they_are_in_files(column: pd.Series, cell: Any) -> None:
    assert rows(PEOPLE.assign(x=column)) == [{**rows(PEOPLE)[0], "x": cell}, rows(PEOPLE)[1]]


@pytest.mark.parametrize(
    ("table", "why"),
    [
        (PEOPLE.rename(columns={"age": "name"}), "several columns are called 'name'"),
        (PEOPLE.assign(**{"Unnamed: 3": ["x", None]}), r"column 4 \('Unnamed: 3'\) has no name, and 'x' in it"),
        (PEOPLE.assign(x=[b"\xff", None]), r"row 1: found bytes in column 'x' that are not UTF-8"),
        ({"name": ["Ann"], "age": []}, "columns of different lengths"),
        ({"name": "Ann"}, "a dictionary whose values are no lists"),
        ([3], "row 1: found 3; each row is a dictionary"),
        (3, "found int; a table is a file, a DataFrame"),
    ],
)
def test_tables_that_would_lose_something_are_refused(table: Any, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        from_table(table)


def test_columns_of_several_levels_are_joined() -> None:
    frame = PEOPLE.set_axis(
        pd.MultiIndex.from_tuples([("name", ""), ("persona", "Unnamed: 1_level_1"), ("a", "b")]), axis=1
    )
    assert rows(frame)[0] == {"name": "Ann", "persona": "A nurse.", "a: b": 41}


def test_stata_gives_labels_in_place_of_codes(tmp_path: Path) -> None:
    frame = PEOPLE.assign(edu=pd.Categorical(["low", "high"]), x=pd.Series([0.1, None], dtype="float32"))
    frame.to_stata(tmp_path / "p.dta", write_index=False)
    assert rows(tmp_path / "p.dta") == [{**rows(PEOPLE)[0], "edu": "low", "x": 0.1}, {**rows(PEOPLE)[1], "edu": "high"}]


def test_spss_gives_labels_and_says_what_is_declared_missing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pyreadstat = pytest.importorskip("pyreadstat")
    labels = {"edu": {1: "low", 2: "high", 9: "refused"}}
    frame = pd.DataFrame({"name": ["Ann", "Bo", "Cy"], "edu": [1.0, 2.0, 9.0]})
    pyreadstat.write_sav(frame, str(tmp_path / "p.sav"), variable_value_labels=labels, missing_ranges={"edu": [9]})
    assert rows(tmp_path / "p.sav") == [{"name": "Ann", "edu": "low"}, {"name": "Bo", "edu": "high"}, {"name": "Cy"}]
    assert "left out 1 cell that the file declares missing, by column: edu: 1" in caplog.text


@pytest.mark.parametrize("name", ["p.sav", "p.dta", "p.sas7bdat", "p.por"])
def test_broken_files_of_statistics_packages_say_what_to_export(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"$FL2@(#) SPSS DATA FILE")
    with pytest.raises(ConfigError, match="export a CSV with value labels"):
        read_table(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "what"), [("p.rds", "write.csv"), ("p.ods", "as .xlsx"), ("p.pkl", "pickles may run")]
)
def test_other_formats_are_refused_with_the_way_out(tmp_path: Path, name: str, what: str) -> None:
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(ConfigError, match=what):
        read_table(tmp_path / name)
