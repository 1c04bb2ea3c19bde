"""What of a table is no row or answer of it: further heads, totals, notes, marks of missing values; each is logged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pytest

from mesa_llm.errors import ConfigError
from mesa_llm.population import from_table
from mesa_llm.tables import read_table

KNOWN = {"name", "persona"}


def read(path: Path, text: str, **options: Any) -> list[Any]:
    path.write_text(text, "utf-8")
    return [row for _, row in read_table(path, KNOWN, **options)]


def names(path: Path, text: str) -> list[str]:
    return [row["name"] for row in read(path, text)]


IDS = '"{""ImportId"":""a""}","{""ImportId"":""QID1""}","{""ImportId"":""QID2""}"\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id,name,age\nResponse ID,Your name?,How old?\n" + IDS + "1,Ann,41\n2,Bo,35\n", "lines 2, 3: texts or codes"),
        ("ResponseId,name,age\nResponse ID,What is your name?,How old are you?\n1,Ann,41\n2,Bo,35\n", "line 2"),
        ("name,age,income\nyour first name,your age,income a month\nAnn,41,1\nBo,35,2\n", "line 2"),
        ("name,age\nAnn,41\nname,age\nBo,35\n", "line 3: the column names again"),
        ("# exported, on 2026-03-02\nname,age\nAnn,41\nBo,35\n", "the column names stand on line 2; left out 1 line"),
        ("Wave 2 of our panel,,\n,,\nname,persona,age\nAnn,x,41\nBo,y,35\n", "the column names stand on line 3"),
        ("About,us,\nname,persona,age\nAnn,x,41\nBo,y,35\n", "line 2; left out 1 line above ('About')"),
        ("name,age\nAnn,41\nBo,35\nTotal,76\n", "line 4: totals or notes of the table ('Total')"),
        ("name,persona,age\nAnn,x,41\nBo,y,35\nDurchschnitt,,38\n", "('Durchschnitt')"),
        ("name,age\nAnn,41\nBo,35\nn = 2,\nSource: our panel\n", "lines 4, 5: totals or notes"),
        ("name,age,city\nAnn,41,x\nBo,35,y\nNote: weighted\nby age and sex,,\n", "lines 4, 5: totals or notes"),
        ("name,age,city\nAnn,41,x\nBo,35,y\n\nNote: weighted\nby age and sex\n", "totals or notes"),
        ("name,age,income\nTotal,76,30\nAnn,41,10\nBo,35,20\n", "line 2: totals or notes of the table ('Total')"),
        ("| name | age |\n|------|----:|\n| Ann | 41 |\n| Bo | 35 |\n", "line 2: the column names again, or a line"),
    ],
)
def test_lines_that_are_no_people_are_left_out_and_named(
    tmp_path: Path, text: str, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert names(tmp_path / "t.csv", text) == ["Ann", "Bo"]
    assert said in caplog.text


@pytest.mark.parametrize(
    "text",
    [
        "name,age\nMax,41\nBo,35\n",  # no maximum
        "name,age\nAnn,refused\nBo,35\n",
        "name,age,income\nAnn,refused,unknown\nBo,35,2\n",
        "name,persona\nWhat a name,Why not?\nBo,I ask: why?\n",
        "name,age\nBo,35\nMedian,41\n",
        "question,answer\nname,a\ntotal,5\n",
        "#,name,age\n1,Ann,41\n2,Bo,35\n",
    ],
)
def test_rows_that_look_a_little_like_it_stay(tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture) -> None:
    assert len(read(tmp_path / "t.csv", text)) == 2
    assert not caplog.records


def test_max_is_somebody_although_his_number_is_the_largest(tmp_path: Path) -> None:
    for text in ("name,age\nAnn,41\nBo,35\nMax,41\n", "name,age\nMax,41\nAnn,41\nBo,35\n"):
        assert sorted(names(tmp_path / "t.csv", text)) == ["Ann", "Bo", "Max"]


def test_a_comma_within_a_cell_shifts_no_column(tmp_path: Path) -> None:
    found = read(tmp_path / "t.csv", "id,city\n1,Rome, IT\n2,Oslo, NO\n")
    assert found == ["found 3 cells; wanted 2, one for each column"] * 2


def test_surveymonkeys_two_rows_of_names_are_joined(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = "ID,name,Which do you eat?,,Mood\n,Open-Ended Response,Bread,Cake,Response\n1,Ann,Bread,,5\n2,Bo,,Cake,3\n"
    assert read(tmp_path / "t.csv", text) == [
        {"ID": 1, "name": "Ann", "Which do you eat?: Bread": "Bread", "Mood": 5},
        {"ID": 2, "name": "Bo", "Which do you eat?: Cake": "Cake", "Mood": 3},
    ]
    assert "the column names go on in the line below" in caplog.text


@pytest.mark.parametrize(
    "mark", ["NA", "N/A", "nan", "NULL", "None", ".", "-", "—", "<NA>", "#N/A", "#DIV/0!", "#NV", ".a"]
)
def test_a_mark_of_a_missing_value_is_no_answer_and_is_counted(
    tmp_path: Path, mark: str, caplog: pytest.LogCaptureFixture
) -> None:
    text = f"name,age,city\nAnn,{mark},Oslo\nBo,35,{mark}\n"
    assert read(tmp_path / "t.csv", text) == [{"name": "Ann", "city": "Oslo"}, {"name": "Bo", "age": 35}]
    assert (
        f"2 cells taken for missing values ({mark!r}), the first in line 2, by column: age: 1, city: 1" in caplog.text
    )
    if mark[0] != "#":
        assert read(tmp_path / "t.csv", text, missing=())[0]["age"] == mark
    assert read(tmp_path / "t.csv", text.replace(mark, "-99"), missing=["-99"])[0] == {"name": "Ann", "city": "Oslo"}


def test_null_and_na_are_names_of_people_too(tmp_path: Path) -> None:
    assert read(tmp_path / "t.csv", "name,last_name,x\nNa,Null,null\nNan,Na,Na\n") == [
        {"name": "Na", "last_name": "Null"}, {"name": "Nan", "last_name": "Na"}
    ]  # fmt: skip


def test_rows_that_may_be_headings_of_groups_stay_and_are_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    text = "name,age,city\nWomen,,\nAnn,41,Oslo\nEve,20,Oslo\nMen,,\nBo,35,Rome\n"
    assert names(tmp_path / "t.csv", text) == ["Women", "Ann", "Eve", "Men", "Bo"]
    assert "lines 2, 5 with nothing but a text in the column 'name'; if these are headings of groups" in caplog.text


def test_numbers_shown_in_percent_are_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    workbook = book(tmp_path / "t.xlsx", {"A": [["name", "share"], ["Ann", 0.12], ["Bo", 0.5]]})
    for cell in workbook["A"]["B"]:
        cell.number_format = "0%"
    workbook.save(tmp_path / "t.xlsx")
    assert read_table(tmp_path / "t.xlsx", KNOWN)[0] == (2, {"name": "Ann", "share": 0.12})
    assert "numbers shown in percent are read as they are stored: 0.12 for 12 %, in column 2" in caplog.text


def test_days_as_excel_counts_them_are_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert read(tmp_path / "t.csv", "name,born\nAnn,32874\n") == [{"name": "Ann", "born": 32874}]
    assert "in the column 'born' may be days as Excel counts them (32874 is 1990-01-01)" in caplog.text


def test_every_door_has_the_same_missing_values(tmp_path: Path) -> None:
    rows = [{"name": "Ann", "city": "NA"}, {"name": "Bo", "city": "Oslo"}]
    pd.DataFrame(rows).to_excel(tmp_path / "t.xlsx", index=False)
    pd.DataFrame(rows).to_parquet(tmp_path / "t.parquet")
    pd.DataFrame(rows).to_json(tmp_path / "t.json", orient="records")
    pd.DataFrame(rows).to_stata(tmp_path / "t.dta", write_index=False)
    doors: list[Any] = [tmp_path / f"t.{kind}" for kind in ("xlsx", "parquet", "json", "dta")]
    for door in [*doors, rows, {"name": ["Ann", "Bo"], "city": ["NA", "Oslo"]}, pd.DataFrame(rows)]:
        assert [one.traits for one in from_table(door)] == [{}, {"city": "Oslo"}], door
        assert from_table(door, missing=())[0].traits == {"city": "NA"}, door


def test_a_row_of_missing_values_is_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "t.csv").write_text("name,age\nAnn,41\nNA,NA\n")
    assert len(from_table(tmp_path / "t.csv")) == 1
    assert "(line 3 with nothing else)" in caplog.text


def book(path: Path, sheets: dict[str, list[list[Any]]]) -> Any:
    """Write a workbook, and return its last sheet."""
    workbook: Any = openpyxl.Workbook()
    workbook.remove(workbook.active)
    for title, rows in sheets.items():
        sheet = workbook.create_sheet(title)
        for row in rows:
            sheet.append(row)
    workbook.save(path)
    return workbook


def test_the_sheet_with_the_people_is_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    people = [["Panel of 2026"], [], ["name", "team", "persona"], ["Ann", None, None], ["Bo", "Red", "Bakes."]]
    book(tmp_path / "t.xlsx", {"Read me": [["The panel is on sheet 2."]], "Panel": people})
    assert [row for _, row in read_table(tmp_path / "t.xlsx", KNOWN)] == [
        {"name": "Ann"}, {"name": "Bo", "team": "Red", "persona": "Bakes."}
    ]  # fmt: skip
    assert "'Panel' is read, the first with such columns" in caplog.text


def test_hidden_rows_and_merged_cells_are_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    workbook = book(tmp_path / "t.xlsx", {"A": [["name", "team"], ["Ann", "Red"], ["Bo"], ["Cy", "Blue"]]})
    workbook["A"].merge_cells("B2:B3")
    workbook["A"].row_dimensions[4].hidden = True
    workbook["A"].column_dimensions["B"].hidden = True
    workbook.save(tmp_path / "t.xlsx")
    assert len(read_table(tmp_path / "t.xlsx", KNOWN)) == 3
    assert "1 hidden row and 1 group of hidden columns are read too" in caplog.text
    assert "merged cells, such as B2:B3, count for their first row alone" in caplog.text


def test_columns_of_row_numbers_need_no_name(tmp_path: Path) -> None:
    assert read(tmp_path / "t.csv", "Unnamed: 0,name\n0,Ann\n1,Bo\n") == [{"name": "Ann"}, {"name": "Bo"}]
    assert read(tmp_path / "t.csv", "name\tage\n1\tAnn\t41\n2\tBo\t35\n") == [
        {"name": "Ann", "age": 41}, {"name": "Bo", "age": 35}
    ]  # fmt: skip
    with pytest.raises(ConfigError, match="line 1: column 1 has no name, and line 3 has '35' in it"):
        read(tmp_path / "t.csv", ",name\n41,Ann\n35,Bo\n")
