"""Each week of the course has all that a teacher needs, and its page shows a model that steps."""

import json
import re
import runpy
import sys
from pathlib import Path

import pytest
from mesa import Model

COURSE = Path(__file__).parents[1] / "notebooks" / "course"
WEEKS = sorted(folder for folder in COURSE.iterdir() if re.match(r"\d\d_", folder.name))
FILES = ("README.md", "notebook.ipynb", "exercises.md", "solutions.ipynb", "rubric.md", "quiz.md", "page.py")

each_week = pytest.mark.parametrize("week", WEEKS, ids=lambda week: week.name)


def text_of(week: Path, name: str) -> str:
    return (week / name).read_text(encoding="utf-8")


def test_the_syllabus_has_twelve_weeks_that_are_there() -> None:
    rows = re.findall(r"^\| \[(\d+)\]\((\w+)/README\.md\)", text_of(COURSE, "README.md"), re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, 13))
    assert [folder for _, folder in rows] == [week.name for week in WEEKS]


@each_week
def test_a_week_has_its_files_and_its_text_has_goals_and_links_to_all_of_them(week) -> None:
    text = text_of(week, "README.md")
    assert [name for name in FILES if not (week / name).is_file()] == []
    assert [name for name in FILES[1:] if name not in text] == []
    assert text.startswith("# Week ")
    assert all(heading in text for heading in ("Goals", "Before class", "Read on"))


@each_week
@pytest.mark.parametrize("name", ["notebook", "solutions"])
def test_a_notebook_begins_with_the_title_of_its_week(week, name) -> None:
    cells = json.loads(text_of(week, f"{name}.ipynb"))["cells"]
    titles = [line for cell in cells if cell["cell_type"] == "markdown" for line in cell["source"] if line[0] == "#"]
    assert titles[0].startswith(f"# Week {int(week.name[:2])} · ")
    assert [title for title in titles if not re.match(r"#+ [^#]", title)] == []


@each_week
def test_a_quiz_has_eight_questions_with_four_options_and_one_answer(week) -> None:
    questions = re.split(r"^\*\*\d\.\*\* ", text_of(week, "quiz.md"), flags=re.MULTILINE)[1:]
    assert len(questions) == 8
    for question in questions:
        assert re.findall(r"^- ([A-D])\. ", question, re.MULTILINE) == ["A", "B", "C", "D"]
        assert len(re.findall(r"</summary>\n\n\*\*[A-D]\.\*\* .+?</details>", question, re.DOTALL)) == 1


def test_nobody_passes_the_quizzes_by_letter_or_by_length() -> None:
    """Each letter is right in 20 to 30 % of all questions, and the longest option in at most 35 %."""
    questions = [
        question
        for week in WEEKS
        for question in re.split(r"^\*\*\d\.\*\* ", text_of(week, "quiz.md"), flags=re.MULTILINE)[1:]
    ]
    options = [dict(re.findall(r"^- ([A-D])\. (.+)", question, re.MULTILINE)) for question in questions]
    keys = [re.findall(r"</summary>\n\n\*\*([A-D])\.\*\*", question)[0] for question in questions]
    assert all(0.2 <= keys.count(letter) / len(keys) <= 0.3 for letter in "ABCD")
    longest = [len(each[key]) == max(map(len, each.values())) for each, key in zip(options, keys, strict=True)]
    assert sum(longest) / len(keys) <= 0.35


@each_week
def test_a_rubric_has_four_levels_and_two_marked_answers(week) -> None:
    text = text_of(week, "rubric.md")
    assert re.search(r"^\|(?:-+\|){5}$", text, re.MULTILINE)
    assert len(re.findall(r"\*\*[^*\n]*\d+ of \d+\.?\*\*", text)) == 2


@each_week
def test_a_page_is_made_and_its_model_steps(week, monkeypatch) -> None:
    monkeypatch.syspath_prepend(week)  # as for `mesa-llm app FILE`; a week may have modules of its own
    modules = dict(sys.modules)
    page = runpy.run_path(str(week / "page.py"))["page"]
    given = (*page.args, *page.kwargs.values())
    model = next(value for value in given if isinstance(value, Model | type))
    if isinstance(model, type):
        model = model(**page.kwargs.get("parameters", {}))
    model.step()
    assert model.time == 1
    for name in set(sys.modules) - set(modules):
        if getattr(sys.modules[name], "__file__", None) == str(week / f"{name}.py"):
            del sys.modules[name]
