"""PsychoBench: protocols, scores that are known beforehand, the original file, and norms for it alone."""

import json
import os
import shutil
from functools import partial
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from mesa_llm import ConfigError, ScriptedLLM
from mesa_llm_models.psychobench.items import FORMS, own_instruments, read_original
from mesa_llm_models.psychobench.model import PsychoBenchModel
from mesa_llm_models.psychobench.scores import score_table

ORIGINAL = Path(os.environ.get("MESA_LLM_DATA", "nowhere"), "psychobench", "questionnaires.json")
needs_original = pytest.mark.skipif(not ORIGINAL.is_file(), reason="MESA_LLM_DATA holds no questionnaires.json")


def always(answer):
    """Answer every item with one number."""

    def reply(request):
        asked = request.schema["properties"]
        return {name: answer for name in asked if name != "reasoning"}

    return ScriptedLLM(reply)


def entry(**changes):
    traits = {"cat_name": "Extraversion", "cat_questions": [1, 2], "crowd": []}
    fields = {"name": "BFI", "questions": {"1": "I talk.", "2": "I am shy."}, "prompt": "Rate:", "scale": 6}
    return fields | {"compute_mode": "AVG", "reverse": [2], "categories": [traits]} | changes


@pytest.mark.parametrize("history", [True, False])
@pytest.mark.parametrize("per_request", [1, 7, 200])
def test_by_rule_scores_tell_the_respondents_levels(per_request, history) -> None:
    model = PsychoBenchModel(administrations=6, per_request=per_request, history=history, rng=2)
    model.run_for(6)
    (respondent,) = model.agents
    assert model.totals.answered == model.totals.asked == 6 * 177
    errors = [
        abs(row.share(row.mean) - respondent.levels[row.instrument, row.subscale])
        for row in model.scores()
        if row.instrument == "Interests"
    ]
    assert sum(errors) / len(errors) < 0.12


def test_a_later_page_shows_the_earlier_ones_of_its_own_questionnaire_alone() -> None:
    model = PsychoBenchModel(
        llm=always(3), scoring="replies", instruments=["Five traits", "Money"], per_request=8, rng=1
    )
    model.step()
    prompts = [json.loads(prompt) for prompt in model.runlog.calls()["prompt"]]
    assert [len(prompt) for prompt in prompts] == [2, 2, 4, 6]
    assert prompts[-1][1]["content"] == prompts[0][1]["content"]
    assert prompts[-1][2]["role"] == "assistant"


def test_without_history_every_page_is_asked_by_itself() -> None:
    model = PsychoBenchModel(
        llm=always(3), scoring="replies", instruments=["Five traits"], per_request=8, history=False, rng=1
    )
    model.step()
    assert [len(json.loads(prompt)) for prompt in model.runlog.calls()["prompt"]] == [2, 2, 2]


def test_a_respondent_who_is_asked_nothing_has_a_prompt_as_the_page_shows_it() -> None:
    (respondent,) = PsychoBenchModel(rng=1).agents
    assert respondent.prompt(respondent.observe())[0].role == "system"


def test_the_published_order_comes_first_where_it_is_asked_for() -> None:
    model = PsychoBenchModel(instruments=["Money"], order="published first", rng=1)
    texts = []
    for _ in range(2):
        (seen,) = model.observations().values()
        texts.append([item.facts[1] for item in seen.facts.items])
        model.step()
    assert texts[0] == [1, 2, 3, 4, 5, 6] != texts[1]


def test_an_order_is_kept_for_as_many_administrations_as_are_asked_for() -> None:
    orders = []
    model = PsychoBenchModel(instruments=["Five traits"], order="published first", tests_per_order=2, n_agents=2, rng=1)
    for _ in range(6):
        orders.append([[item.facts[1] for item in seen.facts.items] for seen in model.observations().values()])
        model.step()
    assert [orders[step] == orders[step + 1] for step in range(5)] == [True, False, True, False, True]
    assert orders[0][0] == orders[0][1] == sorted(orders[0][0]) != orders[2][0] != orders[2][1]


def test_one_answer_for_all_gives_the_middle_where_items_are_reversed_in_pairs() -> None:
    model = PsychoBenchModel(llm=always(5), instruments=["Five traits"], rng=1)
    model.step()
    assert {name: mean for name, mean in model.results().items() if ":" in name} == {
        f"Five traits: {name}": 3
        for name in ("Extraversion", "Agreeableness", "Conscientiousness", "Neuroticism", "Openness")
    }


def test_one_answer_for_all_is_said_beside_the_scores() -> None:
    model = PsychoBenchModel(llm=always(5), scoring="replies", instruments=["Five traits"], administrations=1, rng=1)
    model.step()
    assert model.results()["straight lines"] == 1
    assert "1 questionnaire with reversed items holds one number throughout" in model.story()


def test_answers_off_the_scale_are_counted_and_never_scored() -> None:
    model = PsychoBenchModel(llm=always(7), scoring="replies", instruments=["Money"], rng=1)
    model.run_for(2)
    assert model.results() == {
        "Money: Rich": None,
        "Money: Motivator": None,
        "Money: Important": None,
        "answered": 0,
        "out of range": 12,
        "unparsable": 0,
        "missing": 0,
        "straight lines": 0,
    }


def test_a_reply_that_cannot_be_read_is_counted_for_each_item() -> None:
    model = PsychoBenchModel(llm=ScriptedLLM(lambda request: "I am."), scoring="replies", instruments=["Money"], rng=1)
    model.step()
    assert model.n_unparsable == 6
    assert model.n_missing == 0


def test_own_statements_have_every_score_of_the_originals_and_no_norms() -> None:
    own = own_instruments()
    names = [sorted(subscale.name for subscale in one.subscales) for one in own]
    assert sorted(names) == sorted(sorted(form.subscales) for form in FORMS.values())
    assert not set(FORMS) & {one.name for one in own}
    assert not any(subscale.norms for one in own for subscale in one.subscales)


@needs_original
def test_the_original_file_gives_69_scores_with_norms() -> None:
    model = PsychoBenchModel(items=str(ORIGINAL), llm="random", administrations=2, rng=1)
    model.run_for(2)
    assert model.totals.answered == 2 * 512
    table = score_table(model.scores())
    assert len(table.drop_duplicates(["instrument", "subscale"])) == 69
    norm = table.query("instrument == 'BFI' and subscale == 'Openness'").iloc[0]
    assert (norm["norm_mean"], norm["norm_sd"], norm["norm_n"]) == (3.92, 0.66, 6076)
    assert set(table["relation"]) <= {"<", "=", ">"}


@needs_original
def test_the_original_file_is_fetched_once_and_kept(tmp_path, monkeypatch) -> None:
    pytest.importorskip("pooch")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "mesa_llm" / "psychobench").mkdir(parents=True)
    shutil.copy(ORIGINAL, tmp_path / "mesa_llm" / "psychobench")
    assert len(PsychoBenchModel(items="original").instruments) == 13


@pytest.mark.skipif(find_spec("pooch") is not None, reason="pooch is installed")
def test_without_pooch_the_error_says_what_to_do() -> None:
    with pytest.raises(ConfigError, match=r"pip install pooch.*https://raw.*--set TASK\.items=PATH"):
        PsychoBenchModel(items="original")


@needs_original
def test_a_changed_file_has_no_norms(tmp_path) -> None:
    changed = tmp_path / "questionnaires.json"
    changed.write_text(ORIGINAL.read_text(encoding="utf-8").replace("talkative", "silent"), encoding="utf-8")
    assert not any(subscale.norms for one in read_original(changed) for subscale in one.subscales)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "invalid JSON"),
        ([entry(scale=8, min=1, max=5)], "BFI: answers from 1 to 5 do not fit scale 8, which is their sum"),
        ([entry(scale=0)], "BFI: answers from 1 to -1 do not fit scale 0"),
        ([entry(reverse=[9])], r"BFI: the key names unknown items \[9\]"),
        ([entry(questions={})], r"0\.questions"),
        ([entry(questions={"1": "I talk.", "2": " "})], r"BFI: items \[2\] are blank"),
        ([entry(categories=[])], "BFI: there are no categories"),
        (
            [entry(categories=[{"cat_name": "", "cat_questions": [1], "crowd": []}])],
            "each subscale needs a unique name",
        ),
        ([], "it contains no instruments; expected at least one"),
        ([entry(name="16P")], "it contains no instruments"),
        ([{"name": "BFI"}], r"0\.questions: field required"),
        ([entry(), entry()], "BFI is in the file more than once"),
    ],
)
def test_a_bad_file_is_one_clear_error(tmp_path, content, message) -> None:
    path = tmp_path / "file.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    with pytest.raises(ConfigError, match=rf"file\.json: .*{message}"):
        PsychoBenchModel(items=str(path))


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path) -> None:
    path = tmp_path / "file.json"
    path.write_text(json.dumps([entry()]), encoding="utf-8-sig")
    assert [one.name for one in read_original(path)] == ["BFI"]


def test_a_missing_file_says_where_the_original_is() -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.json cannot be opened: No such file.*https://raw"):
        PsychoBenchModel(items="nowhere.json")


def test_a_list_that_names_no_instruments_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"instruments names none; name one or more of .*, or leave it out for all"):
        PsychoBenchModel(instruments=[])


def test_an_unknown_instrument_is_refused_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match="there is no 'BFI' in items='own'; allowed: Five traits"):
        PsychoBenchModel(instruments=["BFI"])


def test_an_instrument_of_ones_own_in_the_original_form(tmp_path) -> None:
    own = entry(name="Tidiness", prompt="0 is never, 4 is always.", scale=4, compute_mode="SUM")
    (tmp_path / "own.json").write_text(json.dumps([own, entry(scale=8)]))
    model = PsychoBenchModel(items=str(tmp_path / "own.json"), administrations=1, llm=always(4), rng=1)
    model.run_for(1)
    scores = {name: value for name, value in model.results().items() if "Extra" in name}
    assert scores == {"Tidiness: Extraversion": 4, "Tidiness: Extraversion (sum)": 4, "BFI: Extraversion": 4.0}


IPIP = "item,text,key,scale\n1,Make lists.,+1,Order\n2,Leave things.,-1,Order\n3,Like order.,1,Order\n4,Talk.,R,Talk\n"


@pytest.mark.parametrize("name", ["ipip.csv", "ipip.json", "ipip.xlsx", "ipip.tsv"])
def test_a_table_of_items_is_an_instrument_scored_by_scale(tmp_path, name) -> None:
    frame = pd.read_csv(StringIO(IPIP), dtype=str)
    write = {"csv": frame.to_csv, "xlsx": frame.to_excel, "tsv": partial(frame.to_csv, sep="\t")}.get(name[5:])
    if write is None:
        (tmp_path / name).write_text(frame.to_json(orient="records"))
    else:
        write(tmp_path / name, index=False)
    model = PsychoBenchModel(items=str(tmp_path / name), administrations=1, llm=always(5), rng=1)
    model.run_for(1)
    assert [*model.results().items()][:4] == [
        ("ipip: Order", 11 / 3), ("ipip: Order (sum)", 11), ("ipip: Talk", 1), ("ipip: Talk (sum)", 1)
    ]  # fmt: skip
    assert "whole number from 1 to 5" in json.loads(model.runlog.calls()["prompt"][0])[-1]["content"]


# -- what a respondent needs to know


@pytest.mark.parametrize("per_request", [1, 7, 30])
def test_a_page_has_its_statements_by_number_and_what_the_ends_of_its_scale_mean(per_request) -> None:
    model = PsychoBenchModel(per_request=per_request, history=False, rng=1)
    (turns,) = model.administer()
    for seen in (turn.observation for turn in turns):
        items, scale = seen.facts.items, seen.facts.items[0].facts[0].scale
        for number, item in enumerate(items, 1):
            assert (f"\n{number}. {item.text}" if len(items) > 1 else f"“{item.text}”") in seen.text
        assert all(f"{end} ({scale.anchors[end]})" in seen.text for end in (scale.low, scale.high))
        assert items[0].choices == tuple(range(scale.low, scale.high + 1))


# -- what an answer counts as


def in_turn(*answers):
    """Answer every item with one number after the other, request by request."""
    given = iter(answers)

    def reply(request):
        asked, answer = request.schema["properties"], next(given)
        return dict.fromkeys(asked, answer) if set(asked) != {"answer"} else {"answer": answer}

    return ScriptedLLM(reply)


def test_without_probabilities_a_page_is_drawn_several_times_and_its_answers_count_as_their_mean() -> None:
    model = PsychoBenchModel(llm=in_turn(1, 1, 1, 2, 5), instruments=["Money"], per_request=6, administrations=1, rng=1)
    model.step()
    assert model.answering == "draws"
    assert model.results()["Money: Rich"] == 2
    table = model.world.tables()["answers"]
    assert len(table) == 6
    assert {row["distribution"] for row in table} == {"1:0.6 2:0.2 5:0.2"}
    assert "the mean of all answers over 5 draws" in model.story()
    assert "60% on average" in model.story()


def test_each_draw_reads_its_own_earlier_pages() -> None:
    model = PsychoBenchModel(llm=in_turn(1, 5, 1, 5), instruments=["Money"], per_request=3, draws=2, rng=1)
    model.step()
    prompts = [json.loads(prompt) for prompt in model.runlog.calls()["prompt"]]
    assert [prompt[2]["content"] for prompt in prompts[2:]] == ['{"1": 1, "2": 1, "3": 1}', '{"1": 5, "2": 5, "3": 5}']


def test_draws_are_at_the_language_models_own_temperature_and_single_replies_at_0() -> None:
    models = [PsychoBenchModel(llm=always(3), instruments=["Money"], scoring=how, rng=1) for how in (None, "replies")]
    assert [agent.config.settings.temperature for model in models for agent in model.agents] == [1, 0]
    assert "does not show how probable the others were" in models[1].story()


def test_a_language_model_that_gives_probabilities_is_asked_for_them() -> None:
    llm: Any = always(3)
    llm.gives_probabilities = True
    model = PsychoBenchModel(llm=llm, instruments=["Money"], rng=1)
    assert (model.answering, model.engine.scoring) == ("probabilities", "probabilities")
    assert PsychoBenchModel(llm=llm, instruments=["Money"], reasoning="inline", rng=1).answering == "draws"


@pytest.mark.parametrize("llm", ["rule", "random"])
def test_who_is_no_language_model_answers_once(llm) -> None:
    model = PsychoBenchModel(llm=llm, instruments=["Money"], rng=1)
    model.step()
    assert model.totals.asked == 6
    assert model.answering == "replies"
    assert "counts as" not in model.story()


def test_a_run_with_draws_is_continued_and_replayed_as_it_was(tmp_path) -> None:
    own = {"llm": in_turn(*range(1, 6)), "instruments": ["Money"], "administrations": 1, "rng": 1}
    first = PsychoBenchModel(**own, log=tmp_path / "run.sqlite")
    first.step()
    first.close()
    again = PsychoBenchModel(**own | {"llm": in_turn()}, log=tmp_path / "run.sqlite")
    again.step()
    assert again.results() == first.results()
    assert again.world.tables() == first.world.tables()
