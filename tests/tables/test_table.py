"""Tables as people have them: forms, encodings, cells that stay as they are, and sizes that are refused at once."""

from __future__ import annotations

import gzip
import json
import zipfile
from datetime import date
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pyarrow
import pytest
from pyarrow import parquet

from mesa_llm.errors import ConfigError
from mesa_llm.population import Persona, from_file, from_table
from mesa_llm.tables import numbers_of, plain_number, read_table, whole_rows

ANN = {"name": "Ann", "age": 41}


def rows(path: Path, contents: str | bytes) -> list[Any]:
    path.write_bytes(contents if isinstance(contents, bytes) else contents.encode())
    return [row for _, row in read_table(path, {"name", "persona"})]


CELLS = "01850 007 1e5 1E5 12345678901234567890 TRUE nil inf 2024-01-02 1-2 +5 1.50 .5 5. 1_000 1,5 -0 0x1F"


@pytest.mark.parametrize("cell", [*CELLS.split(), "  x  ", "a\r\nb", "50%", "9" * 5_000])
def test_what_a_cell_says_stands_in_the_prompt(tmp_path: Path, cell: str) -> None:
    (path := tmp_path / "p.csv").write_text(f'name,code\nAnn,"{cell}"\n', newline="")
    assert from_file(path)[0].config().text == f"Your name is Ann.\ncode: {cell}"


@pytest.mark.parametrize("cells", [("1", "02"), ("1", "x"), ("1.5", "1.50"), ("1", " 2"), ("0.1", "1e-1")])
def test_a_column_is_numbers_only_if_all_its_cells_are(tmp_path: Path, cells: tuple[str, str]) -> None:
    assert [row["n"] for row in rows(tmp_path / "t.csv", f"name,n\na,{cells[0]}\nb,{cells[1]}\n")] == list(cells)
    assert [row["n"] for row in rows(tmp_path / "t.csv", "name,n\na,1\nb,-2.5\nc,\n") if "n" in row] == [1, -2.5]


@pytest.mark.parametrize("number", [0, -7, 2**80, 0.5, 1e15, -12.25])
def test_a_plain_number_is_written_as_it_was(number: float) -> None:
    assert str(plain_number(str(number))) == str(number)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("first", ["", "sep=;", '"SEP=;"'])
def test_texts_are_read_in_the_encodings_of_excel_and_others(
    tmp_path: Path, encoding: str, end: str, first: str, caplog: pytest.LogCaptureFixture
) -> None:
    text = end.join([*([first] if first else []), "Name;Bio", 'Jörg Weiß;"Bäcker, ""fein"" – seit 1999"', "Zoé;x", ""])
    assert rows(tmp_path / "t.csv", text.encode(encoding)) == [
        {"Name": "Jörg Weiß", "Bio": 'Bäcker, "fein" – seit 1999'},
        {"Name": "Zoé", "Bio": "x"},
    ]
    assert [record.getMessage().count("is read as Windows-1252") for record in caplog.records] == [1] * (
        encoding == "cp1252"
    )


@pytest.mark.parametrize(
    ("text", "encoding"),
    [("Привет, мир", "cp1251"), ("Paweł", "cp1250"), ("Köln", "mac-roman"), ("Jörg", "cp850"), ("日本", "shift-jis")],
)
def test_an_encoding_that_cannot_be_told_is_refused_with_the_way_out(tmp_path: Path, text: str, encoding: str) -> None:
    with pytest.raises(ConfigError, match=r"line 3: the text is neither UTF-8 nor Windows-1252; save it as UTF-8"):
        rows(tmp_path / "t.csv", f"name\nAnn\n{text}\n".encode(encoding))


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        *((name, "cp1254") for name in ("Ayşe Güneş", "İbrahim", "Dağlı", "Ali Yılmaz", "Şule")),
        *(
            (name, "cp1250")
            for name in ("Łukasz", "Zdeněk", "Řidič", "Jiří Dvořák", "Gdańsk", "Szőke", "Brăila", "Čapek")
        ),
        *((name, "cp1257") for name in ("Bērziņš", "Žukauskas")),
        *((name, "cp1251") for name in ("Да", "Анна")),
        ("Zoé", "cp437"),
        ("北京", "gbk"),
    ],
)
def test_a_code_page_that_is_not_western_is_refused_unless_it_is_named(
    tmp_path: Path, text: str, encoding: str
) -> None:
    content = f"name\nAnn\n{text}\n".encode(encoding)
    with pytest.raises(ConfigError, match=r"line 3: the text is neither UTF-8 nor Windows-1252; .* with encoding="):
        rows(tmp_path / "t.csv", content)
    assert read_table(tmp_path / "t.csv", encoding=encoding) == [(2, {"name": "Ann"}), (3, {"name": text})]


WESTERN = [
    *("José, Bäckerin in Köln", "François Lefèvre, cœur, créée, théâtre", "Núñez, ¿Qué? Íñigo, pingüino", "Søren, Ærø"),
    *(
        "João Simões, ações, irmã",
        "più, così, perché, Niccolò",
        "Åsa Öberg, Äänekoski",
        "Vicenç, Antònia",
        "“a” – 5 m², £5",
    ),
]


@pytest.mark.parametrize("text", WESTERN)
def test_western_letters_are_read_as_windows_1252(tmp_path: Path, text: str) -> None:
    for encoding in ("cp1252", "utf-8"):
        assert rows(tmp_path / "t.tsv", f"name\tx\n{text}\t1\n".encode(encoding)) == [{"name": text, "x": 1}]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("name\nJosé\n".encode() + "Zoë\n".encode("cp1252"), "line 2: this part of the file is UTF-8"),
        ("name\nJosé\n".encode().decode("cp1252").encode(), "line 2: 'JosÃ©' is UTF-8 that a program took for"),
        ("name\ndon’t\n".encode().decode("cp1252").encode(), "'donâ€™t' is UTF-8"),
        (b"PK\x03\x04", "is a workbook or an archive; rename it to .xlsx"),
    ],
)
def test_mixed_and_twice_encoded_texts_are_refused(tmp_path: Path, content: bytes, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        rows(tmp_path / "t.csv", content)


@pytest.mark.parametrize("name", ["t.tsv", "t.txt", "t.csv", "t.tab", "t.csv.gz"])
def test_tabs_line_breaks_in_cells_and_packed_files(tmp_path: Path, name: str) -> None:
    text = b'name\tpersona\tage\nAnn\t"One, two;\nthree"\t41\n'
    path = tmp_path / name
    found = rows(path, gzip.compress(text) if name.endswith("gz") else text)
    assert found == [{"name": "Ann", "persona": "One, two;\nthree", "age": 41}]


@pytest.mark.parametrize(
    "text",
    [
        'name age persona\nAnn 41 x\nBo 20 "y z"\n',
        '"name" "age" "persona"\n"1" "Ann" 41 "x"\n"2" "Bo" 20 "y z"\n',  # as R writes it
        "| name | age | persona |\n|---|---|---|\n| Ann | 41 | x |\n| Bo | 20 | y z |\n",
        'name, age, persona\nAnn, 41, "x"\nBo, 20, "y z"\n',
        "name,age,persona,\nAnn,41,x\nBo,20,y z\n",
        "\ufeff\ufeffname\u200b,age\u00a0,persona\nAnn,41,x\nBo,20,y z\n",
    ],
)
def test_tables_are_read_however_cells_are_set_apart(tmp_path: Path, text: str) -> None:
    assert rows(tmp_path / "t.txt", text) == [{**ANN, "persona": "x"}, {"name": "Bo", "age": 20, "persona": "y z"}]


@pytest.mark.parametrize("text", ["full name\nAnn Lee\nBo Chi\n", "name\nAgent 1\nAgent 2\n", "name\nAnn 1\nBo 2\n"])
def test_names_with_spaces_are_one_column(tmp_path: Path, text: str) -> None:
    assert all(len(row) == 1 for row in rows(tmp_path / "t.csv", text))


def test_a_quotation_mark_behind_a_backslash_is_one(tmp_path: Path) -> None:
    text = 'name,persona\nAnn,"says \\"hi\\", often"\nBo,"C:\\\\"\n'
    assert [row["persona"] for row in rows(tmp_path / "t.csv", text)] == ['says "hi", often', "C:\\"]
    plain = 'name,persona\nAnn,"C:\\dir\\"\nBo,"{""a"": ""\\""""}"\n'
    assert [row["persona"] for row in rows(tmp_path / "t.csv", plain)] == ["C:\\dir\\", '{"a": "\\""}']


def test_an_encoding_that_may_be_wrong_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "t.csv").write_text("name\nZoë\n", "utf-8")
    read_table(tmp_path / "t.csv", encoding="cp1252")
    assert "is read as cp1252, as you say; it is valid UTF-8, too" in caplog.text


@pytest.mark.parametrize(
    ("name", "content", "way"),
    [
        ("t.csv", b"<!DOCTYPE html>\n<html>", "is a web page, not a table; download the file itself"),
        ("t.csv", b"version https://git-lfs.github.com/spec/v1\n", "is a pointer of Git LFS, .* `git lfs pull`"),
        ("t.csv", b"\xd0\xcf\x11\xe0", "a workbook of old Excel, or one with a password; save it as"),
        ("t.csv", b"PAR1", "is a Parquet file; rename it to .parquet"),
        ("t.csv.zip", b"PK\x03\x04", "not '.zip'; unpack it"),
        ("t.dat", b"name\nAnn\n", "if it is text with separators, call it .csv"),
        ("t.csv", b'"name","age"\n"r1","Ann",30\n"r2","Bo",41\n', "column 1 has no name, and line 2 has 'r1' in it"),
    ],
)
def test_a_file_that_is_no_table_says_what_it_is_and_the_way_out(
    tmp_path: Path, name: str, content: bytes, way: str
) -> None:
    with pytest.raises(ConfigError, match=way):
        rows(tmp_path / name, content)


def test_codes_among_labels_stay_whole_numbers() -> None:
    frame = pd.DataFrame({"name": ["Ann", "Bo"], "trust": pd.Series(["low", 2.0], dtype=object)})
    assert [row["trust"] for _, row in read_table(frame) if isinstance(row, dict)] == ["low", 2]


def test_an_object_of_traits_is_traits() -> None:
    document = [{"name": "Ann", "traits": {"age": 41, "city": "Oslo"}}, {"name": "Bo", "traits": {"age": 20}}]
    assert [one.traits for one in from_table(document)] == [{"age": 41, "city": "Oslo"}, {"age": 20}]


@pytest.mark.parametrize(
    "document",
    [
        [ANN, {"name": "Bo", "age": 20}],
        {"name": ["Ann", "Bo"], "age": [41, 20]},
        {"users": [ANN, {"name": "Bo", "age": 20}], "version": 3},
        {"name": {"0": "Ann", "1": "Bo"}, "age": {"0": 41, "1": 20}},
        {"0": ANN, "1": {"name": "Bo", "age": 20}},
        {"columns": ["name", "age"], "index": [0, 1], "data": [["Ann", 41], ["Bo", 20]]},
    ],
)
def test_json_in_all_forms_that_tables_have(tmp_path: Path, document: Any) -> None:
    assert rows(tmp_path / "t.json", json.dumps(document)) == [ANN, {"name": "Bo", "age": 20}]
    frame = pd.DataFrame(rows(tmp_path / "t.json", json.dumps(document)))
    for orient in ("records", "columns", "split", "table", "index"):
        found = rows(tmp_path / "t.json", str(frame.to_json(orient=orient)))
        assert [{name: row[name] for name in ANN} for row in found] == frame.to_dict("records"), orient
    assert rows(tmp_path / "t.ndjson", str(frame.to_json(orient="records", lines=True))) == frame.to_dict("records")


def test_numbers_of_json_stay_as_they_are_written(tmp_path: Path) -> None:
    text = '[{"name": "Ann", "a": 1.50, "b": 1e5, "c": 12345678901234567890, "d": 2.5, "e": "01"}]'
    assert rows(tmp_path / "t.json", text)[0] == {
        "name": "Ann", "a": "1.50", "b": "1e5", "c": 12345678901234567890, "d": 2.5, "e": "01"
    }  # fmt: skip


def test_a_workbook_gives_its_cells_as_they_are(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    sheet: Any = book.active
    sheet.append(["name", "zip", "id", "age", "mean", "born", "span", "yes"])
    sheet.append(["Ann", "01850", 7, 41.0, 2.5, date(2024, 1, 2), "1-2", True])
    sheet.append([])
    sheet.append(["Bo", "07102", 12, 20, 1e-7, date(1990, 12, 31), "3", False, None])
    for row in (2, 4):
        sheet.cell(row, 3).number_format = "00000"
    sheet.cell(4, 6).number_format = "00-00-00"
    sheet.cell(4, 6).value = 1234
    book.save(tmp_path / "t.xlsx")
    found = read_table(tmp_path / "t.xlsx")
    assert [(line, [*row.values()]) for line, row in found if isinstance(row, dict)] == [
        (2, ["Ann", "01850", "00007", 41, 2.5, "2024-01-02", "1-2", "TRUE"]),
        (4, ["Bo", "07102", "00012", 20, 1e-7, "00-12-34", "3", "FALSE"]),
    ]


def test_a_formula_without_its_value_is_no_empty_cell(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    sheet: Any = book.active
    for cells in (["name", "age"], ["Ann", 41], ["Bo", "=B2+1"]):
        sheet.append(cells)
    book.save(tmp_path / "t.xlsx")
    assert read_table(tmp_path / "t.xlsx") == [
        (2, ANN), (3, "found a formula without a stored value; open the file in Excel and save it")
    ]  # fmt: skip


def test_parquet_gives_its_cells_as_they_are(tmp_path: Path) -> None:
    frame = pd.DataFrame({"name": ["Ann", "Bo"], "zip": ["01850", None], "born": [date(2024, 1, 2)] * 2, "n": [1, 2]})
    frame["kind"], frame["group"] = pd.Categorical(["x", "y"]), pd.Categorical([7, 7])
    frame.to_parquet(tmp_path / "t.parquet")
    assert [row for _, row in read_table(tmp_path / "t.parquet")] == [
        {"name": "Ann", "zip": "01850", "born": "2024-01-02", "n": 1, "kind": "x", "group": 7},
        {"name": "Bo", "born": "2024-01-02", "n": 2, "kind": "y", "group": 7},
    ]


@pytest.mark.parametrize(("name", "package"), [("t.xlsx", "openpyxl"), ("t.parquet", "pyarrow")])
def test_a_package_that_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, package: str
) -> None:
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(ConfigError, match=f"`pip install {package}`"):
        read_table(tmp_path / name)


@pytest.mark.parametrize(
    ("contents", "why"),
    [
        ("name,age,name\nx,1,2\n", r"line 1: columns 1 and 3 are both called 'name'"),
        ("sep=;\nname;;age\nAnn;x;1\n", r"line 2: column 2 has no name, and line 3 has 'x' in it"),
        ("\n\nname\n", "line 3: found only column names"),
        (",,\n1,2,3\n", "line 1: found no column names"),
        ('name,bio\nAnn,"x\ny\n', "line 2: a quotation mark opens a cell, and nothing closes it"),
        (b"name,bio\n" + b"Ann,x\n" * 9 + b"Bo,\x00", "NUL"),
    ],
)
def test_tables_that_are_broken_say_on_which_line(tmp_path: Path, contents: str | bytes, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        rows(tmp_path / "t.csv", contents)


def test_separators_and_blank_rows_at_the_edges_of_a_sheet_are_no_cells(tmp_path: Path) -> None:
    assert rows(tmp_path / "t.csv", "name;age;;\nAnn;41;;\n;;;\n \n") == [ANN]
    assert rows(tmp_path / "t.csv", ",name,age\n17,Ann,41\n") == [ANN]
    assert rows(tmp_path / "t.csv", "name,age\nAnn\nBo,1,x\n") == [
        "found 1 cells; wanted 2, one for each column", "found 3 cells; wanted 2, one for each column"
    ]  # fmt: skip


def bomb(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b"0" * 2**28)


def wide(path: Path) -> None:
    texts = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 300, pyarrow.int32()), ["x" * 2**23])
    parquet.write_table(pyarrow.table({"a": texts}), path)


@pytest.mark.parametrize(
    ("name", "write", "why"),
    [
        ("t.csv", lambda path: path.write_text(",".join(f"c{i}" for i in range(10**6))), "1,000,000 columns"),
        ("t.csv", lambda path: path.write_text(f"name\n{'x' * 20_000_000}\n"), "line 2: .*up to 8,388,608"),
        ("t.json", lambda path: path.write_text("[" * 10**6), "not a readable JSON"),
        ("t.json", lambda path: path.write_text('{"a":' * 10**5), "not a readable JSON"),
        ("t.json", lambda path: path.write_text(json.dumps([{str(i): 1 for i in range(10**5)}])), "100,000 columns"),
        ("t.jsonl", lambda path: path.write_text(json.dumps({"a": "x" * 2**24})), "16,777,216 characters"),
        ("t.xlsx", bomb, "268,435,456 bytes when unpacked"),
        ("t.parquet", wide, "texts are too long"),
        ("t.csv.gz", lambda path: path.write_bytes(gzip.compress(bytes(2**20))[:-9]), "cannot be unpacked"),
    ],
)
def test_what_is_too_large_is_refused_at_once(tmp_path: Path, name: str, write: Any, why: str) -> None:
    write(tmp_path / name)
    with pytest.raises(ConfigError, match=why):
        whole_rows(tmp_path / name, read_table(tmp_path / name))


def test_a_text_that_is_too_long_for_a_prompt_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(f"name,persona\nAnn,{'x' * 200_000}\n")
    with pytest.raises(ConfigError, match=r"'persona': found a text of 200,000 characters; wanted up to 100,000"):
        from_file(tmp_path / "t.csv")


def test_a_persona_of_tinytroupes_is_read_with_its_facts(tmp_path: Path) -> None:
    persona = {
        "name": "Lisa Carter",
        "age": 28,
        "occupation": {"title": "Data Scientist", "organization": "Contoso"},
        "style": "Professional.",
        "personality": {"traits": ["You are curious."], "big_five": {"openness": "High."}},
        "beliefs": ["Data is key."],
        "likes": [],
    }
    (path := tmp_path / "Lisa.agent.json").write_text(json.dumps({"type": "TinyPerson", "persona": persona}))
    text = (
        "Occupation:\n- Title: Data Scientist\n- Organization: Contoso\n"
        "Personality:\n- Traits:\n  - You are curious.\n- Big five:\n  - Openness: High.\nBeliefs:\n- Data is key."
    )
    assert from_file(path) == [Persona(name="Lisa Carter", persona=text, traits={"age": 28}, style="Professional.")]


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["25 years", "31 years"], [25, 31]),
        (["12 %", "7.5 %"], [12, 7.5]),
        (["$1,200.50", "$900"], [1200.5, 900]),
        (["1.234,5", "7"], [1234.5, 7]),
        (["1,234", "12,5"], [1.234, 12.5]),
        (["1,234", "1,234.5"], [1234, 1234.5]),
        (["1\u202f234", "−5"], [1234, -5]),
        (["1 = never", "5 = always", 3], [1, 5, 3]),
        (["5 - agree", "1 (not at all)"], [5, 1]),
        (["18-24", "25-34"], None),
        (["yes", "5"], None),
        (["2024-01-02"], None),
    ],
)
def test_numbers_are_read_without_units_and_labels(cells: list[Any], numbers: list[float] | None) -> None:
    found = numbers_of(cells)
    assert (found and found[0]) == numbers


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        (["1,234", "5,678"], "'1,234' may be thousands"),
        (["1.5", "2,5"], "a decimal comma and some a decimal point"),
        (["25 years", "3 months"], "in 'years' and 'months'"),
        (["1 = never", "1 = always"], "the code 1 has two labels"),
    ],
)
def test_a_number_that_may_be_another_is_refused(cells: list[Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        numbers_of(cells)
