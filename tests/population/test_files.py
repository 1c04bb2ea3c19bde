"""Personas from tables and from OASIS's formats."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mesa_llm.errors import ConfigError
from mesa_llm.population import Persona, from_file, from_oasis, from_table, read_activity, read_users

DATA = os.environ.get("MESA_LLM_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="MESA_LLM_DATA names no folder with the original files")
OASIS = Path(DATA or ".") / "oasis"

X_HEAD = ",user_id,name,username,following_agentid_list,previous_tweets,user_char,description"


def x_file(folder: Path, *rows: str) -> Path:
    """Write a table of X users as OASIS does; a row starts with its index."""
    path = folder / "users.csv"
    path.write_text("\n".join([X_HEAD, *rows]), encoding="utf-8")
    return path


def test_columns_are_recognised_and_the_rest_are_traits(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("Full Name,persona,Age,city,topics\nAnn Lee,You bake.,41,Ghent,bread; cake\nBo,,,Oslo,\n", "utf-8")
    ann, bo = from_table(path)
    assert ann == Persona(
        name="Ann Lee", persona="You bake.", traits={"Age": 41, "city": "Ghent"}, topics=("bread", "cake")
    )
    assert bo == Persona(name="Bo", traits={"city": "Oslo"})


def test_words_that_look_like_missing_values_are_kept_if_asked(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("name,party\nNone,NA\n", "utf-8")
    for read in (from_table, from_file, lambda path, **options: read_users(path, **options).personas):
        assert read(path, missing=()) == [Persona(name="None", traits={"party": "NA"})]


def test_csv_json_lines_and_frames_give_the_same_personas(tmp_path: Path) -> None:
    rows = [{"name": "Ann", "age": 41, "score": 1.5}, {"name": "Bo", "age": 20, "score": 2.5}]
    frame = pd.DataFrame(rows)
    frame.to_csv(tmp_path / "p.csv", index=False)
    (tmp_path / "p.json").write_text(json.dumps(rows), "utf-8")
    (tmp_path / "p.jsonl").write_text("\n".join(json.dumps(row) for row in rows), "utf-8")
    read = [from_table(tmp_path / name) for name in ("p.csv", "p.json", "p.jsonl")]
    assert read[0] == read[1] == read[2] == from_table(frame)
    assert read[0][0].config().text == "Your name is Ann.\nage: 41\nscore: 1.5"


@pytest.mark.parametrize("read", [from_table, from_file])
def test_json_may_begin_with_a_mark_and_hold_line_separators(tmp_path: Path, read) -> None:
    row = '{"name": "Ann", "persona": "You bake.\u2028You sing."}'
    (tmp_path / "p.json").write_text(f"[{row}]", "utf-8-sig")
    (tmp_path / "p.jsonl").write_text(f"{row}\r\n{row}\n", "utf-8-sig")
    assert [*read(tmp_path / "p.json") * 2] == read(tmp_path / "p.jsonl")


@pytest.mark.parametrize(
    ("name", "contents", "why"),
    [
        ("p.xls", b"x", r"not '\.xls'; save it as \.xlsx or CSV"),
        ("p.csv", b"", "line 1: the file is empty"),
        ("p.csv", b"name\n\x81\n", "line 2: the text is neither UTF-8 nor Windows-1252; save it as UTF-8"),
        ("p.json", b"[{]", "is not a readable JSON file"),
        ("p.json", b'{"users": 3}', "holds an object with 'users'; a table is a list of objects"),
        ("p.json", b'[{"name": "Ann"}, 3]', "line 1: found a number; each row is an object"),
        ("p.jsonl", b'\n{"name": "Ann"}\nBo\n', "line 3: found 'Bo'; wanted a JSON object"),
        ("p.json", b'[{"name": "Ann", "age": Infinity}]', "row 1, column 'age': found inf"),
        ("p.json", b'[{"name": ["Ann"]}]', r"row 1, column 'name': found \['Ann'\]"),
    ],
)
def test_files_that_are_no_tables_say_why(tmp_path: Path, name: str, contents: bytes, why: str) -> None:
    (tmp_path / name).write_bytes(contents)
    with pytest.raises(ConfigError, match=why):
        from_table(tmp_path / name)


def test_a_quotation_that_nothing_closes_swallows_nobody(tmp_path: Path) -> None:
    path = x_file(tmp_path, "0,0,Ann,ann1,[],[],,Baker", '1,1,Bo,bo1,[],[],,"Runner', "2,2,Cy,cy1,[],[],,Cook")
    for skip in (False, True):
        with pytest.raises(ConfigError, match="line 3: a quotation mark opens a cell, and nothing closes it"):
            read_users(path, skip=skip)
    path = x_file(tmp_path, '0,0,Ann,ann1,[],[],,5" tall', '1,1,Bo,bo1,[],[],,"Runner\nand cook"')
    assert [one.bio for one in from_oasis(path)] == ['5" tall', "Runner\nand cook"]


def test_users_without_any_description_keep_their_follows(tmp_path: Path) -> None:
    path = x_file(tmp_path, '0,0,Ann,ann1,"[1]",[],,', "1,1,Bo,bo1,[],[],,")
    assert [one.follows for one in from_file(path)] == [(1,), ()]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nobody\.csv cannot be opened"):
        from_file(tmp_path / "nobody.csv")


def test_a_table_without_rows_holds_nobody(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("name\n", "utf-8")
    with pytest.raises(ConfigError, match="line 1: found only column names"):
        from_file(tmp_path / "p.csv")


def test_x_users_bring_follows_and_earlier_posts(tmp_path: Path) -> None:
    path = x_file(
        tmp_path, "0,0,Ann,ann1,\"[1, 0, 1]\",\"['It is late', 'URL']\",I bake.,Baker", "1,1,Bo,bo1,[],[],,Runner"
    )
    ann, bo = from_oasis(path)
    assert (ann.follows, ann.posts, ann.persona, ann.bio) == ((1,), ("It is late", "URL"), "I bake.", "Baker")
    assert (bo.follows, bo.posts, bo.persona, bo.username) == ((), (), "Runner", "bo1")


@pytest.mark.parametrize(
    ("follows", "posts", "why"),
    [
        ("[7]", "[]", "row 1, column 'following_agentid_list': found user 7; the file has users 0 to 0"),
        ("[x]", "[]", r"column 'following_agentid_list': found '\[x\]'; wanted a Python list"),
        ("['1']", "[]", "wanted a list of int"),
        ("3", "[]", "wanted a list of int"),
        ("[]", "[1]", "column 'previous_tweets'.*wanted a list of str"),
        ("[]", "['Bread.', ' ']", "found an empty post; wanted 1 to 5,000 characters"),
        ("[]", f"['{'x' * 100_000}']", "found a post of 100,000 characters"),
        ("[]", "__import__('os')", "wanted a Python list"),
        ("[]", "(" * 500, "wanted a Python list"),
    ],
)
def test_bad_cells_are_named_by_row_and_column(tmp_path: Path, follows: str, posts: str, why: str) -> None:
    path = x_file(tmp_path, f'0,0,Ann,ann1,"{follows}","{posts}",I bake.,Baker')
    with pytest.raises(ConfigError, match=why):
        from_oasis(path)


BROKEN_ROWS = (
    '0,0,Ann,ann1,"[1, 2, 3, 9, \'x\']",[],"I bake.\nBread.",Baker',
    "1,1,Bo,bo1,[x],\"['Bread.', 7]\",I run.,Runner",
    "2,2,Cy,ann1,[],[],I sing.,Singer",
    "3,3,Di,di1,[]",
    "4,4,,,[],[],,",
    "5,5,Ed,ed1,[0],[],I swim.,Swimmer",
)


def test_unusable_rows_are_counted_with_line_and_reason(tmp_path: Path) -> None:
    path = x_file(tmp_path, *BROKEN_ROWS)
    with pytest.raises(ConfigError, match=r"line 2, row 1, .*'x'; wanted a list of int \(3 more of 6 rows"):
        from_file(path)
    users = read_users(path, skip=True)
    assert [(user.name, user.follows, user.posts) for user in users.personas] == [
        ("Ann", (1, 2), ()), ("Bo", (), ("Bread.",)), ("Cy", (), ()), ("Ed", (0,), ())
    ]  # fmt: skip
    assert [(refusal.line, refusal.reason.split(": ")[1][:17]) for refusal in users.refusals] == [
        (6, "found 5 cells; wa"), (7, "found no name, us")
    ]  # fmt: skip
    reasons = ("found 'x'", "found user 9", "follows user 3, whose row", r"found '[x]'", "found 7;")
    assert [(drop.line, why in drop.reason) for drop, why in zip(users.dropped, reasons, strict=True)] == [
        (2, True), (2, True), (2, True), (4, True), (4, True)
    ]  # fmt: skip


def test_usernames_and_names_may_repeat_as_a_row_is_a_user(tmp_path: Path) -> None:
    path = x_file(tmp_path, "0,0,Ann,ann,[1],[],I bake.,", "1,1,Ann,ann,[0],[],I run.,")
    assert [(user.username, user.follows) for user in from_file(path)] == [("ann", (1,)), ("ann", (0,))]
    (tmp_path / "t.csv").write_text("username,persona\nann,Bakes.\nann,Runs.\n")
    assert [user.persona for user in from_file(tmp_path / "t.csv")] == ["Bakes.", "Runs."]


def test_lines_of_json_lists_are_those_of_their_objects(tmp_path: Path) -> None:
    user = {"realname": "Ann", "username": "ann1", "bio": "Baker", "persona": "You bake."}
    path = tmp_path / "users.json"
    path.write_text(json.dumps([user, 3, user, user | {"username": ["bo1"]}], indent=1), "utf-8-sig")
    users = read_users(path, skip=True)
    assert [user.username for user in users.personas] == ["ann1", "ann1", ""]
    assert [(drop.line, drop.reason.split(": ")[-1]) for drop in (*users.refusals, *users.dropped)] == [
        (8, "found a number; each row is an object"),
        (15, "found ['bo1']; this column is text"),
    ]


def test_a_file_without_one_row_that_can_be_used_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="found 5 cells"):
        read_users(x_file(tmp_path, *BROKEN_ROWS[3:4]), skip=True)


def test_counts_stay_with_the_users_who_are_left(tmp_path: Path) -> None:
    days = [f'"{[count] * 24}"' for count in range(1, 7)]
    (tmp_path / "hours.csv").write_text("\n".join(["activity_level_frequency", *days]), "utf-8")
    users = read_users(x_file(tmp_path, *BROKEN_ROWS), tmp_path / "hours.csv", skip=True)
    assert users.counts is not None
    assert users.counts[:, 0].tolist() == [1, 2, 3, 6]
    assert [user.activity[0] for user in users.personas] == [1 / 6, 2 / 6, 3 / 6, 1]


def test_a_user_whose_hours_cannot_be_read_stays_without_them(tmp_path: Path) -> None:
    head = "name,username,user_char,description,activity_level_frequency"
    (tmp_path / "u.csv").write_text(f'{head}\nAnn,ann,x,x,"{[2] * 24}"\nBo,bo,x,x,"[1, 2]"\n')
    users = read_users(tmp_path / "u.csv", skip=True)
    assert [user.activity for user in users.personas] == [(1.0,) * 24, ()]
    assert [drop.line for drop in users.dropped] == [3]


def test_other_columns_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("who,what\na,b\n", "utf-8")
    with pytest.raises(ConfigError, match=r"has the columns \['what', 'who'\]; users of OASIS have"):
        from_oasis(tmp_path / "p.csv")


@pytest.mark.parametrize("hours", ["[1, 2]", str([-1] * 24)])
def test_activity_needs_24_counts(tmp_path: Path, hours: str) -> None:
    (tmp_path / "hours.csv").write_text(f'activity_level_frequency\n"{hours}"\n', "utf-8")
    with pytest.raises(ConfigError, match="wanted 24 counts from 0"):
        read_activity(tmp_path / "hours.csv")


def test_activity_of_others_is_refused(tmp_path: Path) -> None:
    (tmp_path / "hours.csv").write_text(f'activity_level_frequency\n"{[1] * 24}"\n"{[1] * 24}"\n', "utf-8")
    path = x_file(tmp_path, "0,0,Ann,ann1,[],[],I bake.,Baker")
    with pytest.raises(ConfigError, match=r"has 2 rows, but .* has 1 users"):
        from_oasis(path, tmp_path / "hours.csv")
    with pytest.raises(ConfigError, match=r"no users but hours of activity .* give it as `activity`"):
        from_oasis(tmp_path / "hours.csv")


@needs_data
def test_the_rumour_case_has_111_users_and_one_source_post() -> None:
    personas = from_oasis(OASIS / "False_Business_0.csv", OASIS / "user_activity_24h.csv")
    assert len(personas) == 111
    assert [place for place, persona in enumerate(personas) if persona.posts] == [32]
    assert len(personas[32].posts) == 1
    assert sum(len(persona.follows) for persona in personas) == 85


@needs_data
def test_busiest_user_of_the_rumour_case_is_always_active() -> None:
    personas = from_oasis(OASIS / "False_Business_0.csv", OASIS / "user_activity_24h.csv")
    hours = np.array([persona.activity for persona in personas])
    assert hours.max(axis=0).tolist() == [1.0] * 24
    assert hours[1, 1] == 14 / 14
    assert hours[1, 3] == 7 / 15


@needs_data
def test_the_polarisation_case_has_196_users_who_are_always_active() -> None:
    personas = from_file(OASIS / "197_baoshou.csv")
    assert len(personas) == 196
    assert all(persona.activity == (1.0,) * 24 for persona in personas)
    assert all(place not in persona.follows for place, persona in enumerate(personas))


@needs_data
def test_reddit_users_bring_traits_and_topics() -> None:
    personas = from_file(OASIS / "user_data_36.json")
    assert len(personas) == 36
    first = personas[0]
    assert (first.name, first.username, first.topics) == (
        "James Miller", "millerhospitality", ("Economics", "Business")
    )  # fmt: skip
    assert list(first.traits) == ["age", "gender", "mbti", "country", "profession"]


@needs_data
@pytest.mark.parametrize(
    ("name", "contents"),
    [
        ("all_topics.csv", "posts that spread on X"),
        ("counterfactual_36.json", "Reddit posts with their comments"),
        ("product.json", "texts of posts"),
        ("user_activity_24h.csv", "hours of activity"),
        ("False_Business_0_real_propagation.json", "curves of how a post spread"),
    ],
)
@pytest.mark.parametrize("read", [from_file, from_oasis])
def test_original_files_that_hold_no_users_are_refused_with_what_they_hold(read, name: str, contents: str) -> None:
    with pytest.raises(ConfigError, match=f"holds no users but {contents}"):
        read(OASIS / name)


@needs_data
def test_characters_of_sotopia_are_read_as_a_table() -> None:
    amara = from_file(OASIS.parent / "sotopia" / "agent_profiles.jsonl", n=1)[0]
    assert (amara.name, amara.traits["occupation"]) == ("Amara Hartley", "Wildlife Biologist")


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_separator_of_a_table_is_found(tmp_path: Path, separator: str) -> None:
    cells = [["Name", '"age, in years"', "persona"], ["Ann", "41", '"You bake; you sing, too."']]
    path = tmp_path / "people.csv"
    path.write_text("\n".join(separator.join(row) for row in cells), "utf-8-sig")
    assert from_table(path) == [Persona(name="Ann", persona="You bake; you sing, too.", traits={"age, in years": 41})]


def test_a_table_of_one_column_may_hold_other_separators_in_its_heading(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("name\nAnn; or Bo\n", "utf-8")
    assert from_table(tmp_path / "p.csv") == [Persona(name="Ann; or Bo")]


def test_a_table_without_names_and_personas_is_refused_with_its_columns(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("city;price\nOslo;3\n", "utf-8")
    with pytest.raises(ConfigError, match=r"columns 'city', 'price'; a population needs a column 'name' or 'persona'"):
        from_file(tmp_path / "p.csv")


@pytest.mark.parametrize("column", ["name", "Full Name", "persona", "username", "first_name"])
def test_one_column_that_says_who_somebody_is_is_enough(tmp_path: Path, column: str) -> None:
    (tmp_path / "p.csv").write_text(f"{column}\nAnn\n", "utf-8")
    assert len(from_file(tmp_path / "p.csv")) == 1


@pytest.mark.parametrize(
    ("name", "contents", "refused"),
    [
        (
            "t.csv",
            "name,username,age\nAnn,ann,40\nBo,bo,41,x\nCy\nEd,ed,43\n",
            {3: "4 cells", 4: "1 cells"},
        ),
        (
            "t.jsonl",
            '{"name": "Ann", "age": 40}\n{"name": \n\n[]\n{"name": "Ed", "age": 43}\n',
            {2: "JSON object", 4: "a list"},
        ),
    ],
)
def test_broken_rows_of_any_table_are_counted_with_line_and_reason(
    tmp_path: Path, name: str, contents: str, refused: dict[int, str]
) -> None:
    (tmp_path / name).write_text(contents)
    users = read_users(tmp_path / name, skip=True)
    assert [(persona.name, persona.traits["age"]) for persona in users.personas] == [("Ann", 40), ("Ed", 43)]
    assert [refusal.line for refusal in users.refusals] == list(refused)
    for refusal, reason in zip(users.refusals, refused.values(), strict=True):
        assert reason in refusal.reason
    with pytest.raises(ConfigError, match=f"line {min(refused)}, row {min(refused) - (name[-1] == 'v')}: found"):
        read_users(tmp_path / name)
