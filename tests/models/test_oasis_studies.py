"""The studies of OASIS: herds, spreading posts, polarised groups, rumours."""

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mesa_llm import ConfigError, ScriptedLLM
from mesa_llm.benchmark.scores import Estimate
from models.oasis.charts import study_figure
from models.oasis.herd import GROUPS, HerdModel, like_probability, read_threads, rule_disagreement
from models.oasis.studies import COUNTERFACTUAL, HERD, STUDIES, app

DATA = os.environ.get("MESA_LLM_DATA")


def ends(estimate: Estimate) -> tuple[float, float]:
    """Return both ends of an interval."""
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.low, estimate.high


def test_first_votes_are_cast_by_lot_and_evenly() -> None:
    model = HerdModel(n_agents=10, active_share=0, rng=1)
    model.run(4)
    groups = [one.group for one in model.treated]
    assert len(groups) == 4 * 8 * 3
    assert {group: groups.count(group) for group in GROUPS} == dict.fromkeys(GROUPS, 32)
    assert model.scores() == {group: [vote] * 32 for group, vote in GROUPS.items()}


def test_a_vote_blind_population_shows_no_effect_and_a_herding_one_does() -> None:
    outcomes = HERD.run(range(1, 7), 10, active_share=0.3).outcomes
    for group, sign in (("up", 1), ("down", -1)):
        assert ends(outcomes[f"blind: effect, {group}"])[0] < 0 < ends(outcomes[f"blind: effect, {group}"])[1]
        assert all(sign * end > 0 for end in ends(outcomes[f"herding: effect, {group}"]))


def test_votes_follow_the_score_up_to_a_bound() -> None:
    assert like_probability(0, 0.7, 3) == pytest.approx(0.7)
    assert like_probability(5, 0.7, 0) == pytest.approx(0.7)
    assert like_probability(-1, 0.7, 1) < 0.7 < like_probability(1, 0.7, 1) < like_probability(2, 0.7, 1)
    assert like_probability(2, 0.7, 1) == like_probability(9, 0.7, 1)


def test_comments_on_false_posts_are_judged_once_each_and_a_missing_verdict_stays_missing() -> None:
    verdicts = iter([{"answer": 9}, *["no number"] * 1000])
    llm = {"judge": ScriptedLLM(lambda _: next(verdicts)), "*": "rule"}
    model = HerdModel(n_agents=20, preset="counterfactual_herd", active_share=0.5, llm=llm, rng=2)
    model.run(2)
    judged = [score for one in model.treated for _, score in one.comments]
    assert judged == [9.0]
    assert len(model.world.comments_table()) > 1


@pytest.mark.parametrize(
    ("text", "score"),
    [("Nonsense, this is simply not true.", 9), ("True, I agree.", 1), ("Not true? I doubt it.", 9), ("Hm.", 5)],
)
def test_the_rule_counts_words_of_disagreement(text, score) -> None:
    assert rule_disagreement(f"Post:\nThat is true.\n\nComment:\n{text}") == score


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "no readable JSON"),
        ("[]", "holds no list of posts"),
        ('[{"post": " "}]', "entry 0: wanted 'post', a text"),
        ('[{"RS": {"title": "a", "selftext": "b"}, "RC_1": {"body": "c", "group": "sideways"}}]', "a group is one of"),
        ('[{"RS": {"title": "a"}, "RC_1": {}}]', "wanted RS with title"),
    ],
)
def test_files_of_threads_are_refused_with_the_entry(tmp_path, content, message) -> None:
    path = tmp_path / "threads.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        read_threads(path)


@pytest.mark.skipif(not DATA, reason="needs OASIS's files in MESA_LLM_DATA")
def test_oasis_own_counterfactual_posts_keep_their_groups() -> None:
    path = str(Path(DATA or "", "oasis", "counterfactual_36.json"))
    model = HerdModel(n_agents=10, preset="counterfactual_herd", threads=path, rng=1)
    model.run(2)
    by_text = {thread.post: thread.groups[0] for thread in model.threads}
    assert len(model.threads) == 220
    assert all(by_text[model.world.post_view(one.item_id).content] == one.group for one in model.treated)


def test_each_study_draws_what_it_found() -> None:
    for study in STUDIES.values():
        findings = study.run([1, 2], 3, n_agents=20)
        assert len(study_figure(findings).axes) >= len(study.arms)
        assert json.loads(json.dumps(findings.summary()))["seeds"] == 2


def test_a_study_is_one_command_that_goes_on_with_its_logs(tmp_path) -> None:
    command = ["herd", "--seeds", "2", "--steps", "2", "--set", "n_agents=10", "--log", str(tmp_path), "--json"]
    first, second = (json.loads(CliRunner().invoke(app, command).stdout.splitlines()[-1]) for _ in range(2))
    assert first["outcomes"] == second["outcomes"]
    assert len(list(tmp_path.glob("herd-*.sqlite"))) == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [(["swarm"], "there is no study 'swarm'"), (["herd", "--set", "herding=-1"], "greater than or equal to 0")],
)
def test_a_study_that_cannot_be_is_one_line(options, message) -> None:
    done = CliRunner().invoke(app, options)
    assert (done.exit_code, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert message in done.stderr


def test_the_counterfactual_study_reads_votes_into_comments() -> None:
    outcomes = COUNTERFACTUAL.run(range(1, 6), 20).outcomes
    assert ends(outcomes["herding: effect, down"])[0] > 0 > ends(outcomes["herding: effect, up"])[1]
