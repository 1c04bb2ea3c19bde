"""The studies of OASIS: herds, spreading posts, polarised groups, rumours."""

import json
import math
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import ipyvuetify as vuetify
import numpy as np
import pytest
import reacton
import solara
from typer.testing import CliRunner

from mesa_llm import ConfigError, ScriptedLLM
from mesa_llm.charts import Panels
from mesa_llm.cli.app import app
from mesa_llm.experiments.runs.study import StudySetup
from mesa_llm.llm.scripted import call
from mesa_llm.statistics import Estimate
from mesa_llm_models.oasis.ablations import ARMS, TOPIC_ARMS
from mesa_llm_models.oasis.charts import course_chart
from mesa_llm_models.oasis.herd import GROUPS, HerdModel, like_probability, read_threads, rule_disagreement
from mesa_llm_models.oasis.polarisation import ANSWERS, PolarisationModel, stance_of
from mesa_llm_models.oasis.rumours import TOPICS, RumourModel
from mesa_llm_models.oasis.spreading import (
    CURVE_TOPIC,
    FITTED,
    LOG_SLOPE,
    SEES,
    SpreadingModel,
    Topic,
    Twin,
    baseline_curves,
    early_minutes,
    fit_ties,
    fit_times,
    log_slope,
    nrmse,
    read_topics,
    run_twin,
    split_topics,
    spread,
)
from mesa_llm_models.oasis.spreading_studies import CURVES, study_spreading
from mesa_llm_models.oasis.studies import (
    ABLATIONS,
    COUNTERFACTUAL,
    HERD,
    POLARISATION,
    SCALE,
    STUDIES,
    false_posts,
    study_ablations,
)
from mesa_llm_models.oasis.studies_app import PAGES, SHOWN, Studies
from mesa_llm_models.oasis.text import CAUTIOUS
from mesa_llm_models.social.world.curves import SpreadCurves
from tests.faulty_server import FaultyServer, refused

DATA = os.environ.get("MESA_LLM_DATA")


def setup(seeds: Sequence[int], steps: int | None = None, **parameters: Any) -> StudySetup:
    """Set up the runs of a study."""
    return StudySetup(seeds, steps=steps, parameters=parameters)


def study(*words: Any) -> Any:
    """Type the command of a study."""
    return CliRunner().invoke(app, ["study", "oasis", *map(str, words)])


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


def test_hidden_votes_have_no_effect_and_visible_ones_do() -> None:
    outcomes = HERD.run(setup(range(1, 13), 8, n_agents=60, posts_per_step=4, active_share=0.3)).outcomes
    for group, sign in (("up", 1), ("down", -1)):
        assert (
            ends(outcomes[f"votes hidden: effect, {group}"])[0]
            < 0
            < ends(outcomes[f"votes hidden: effect, {group}"])[1]
        )
        assert all(sign * end > 0 for end in ends(outcomes[f"herding: effect, {group}"]))


def test_votes_follow_the_score_up_to_a_bound() -> None:
    assert like_probability(0, 0.7, 3) == pytest.approx(0.7)
    assert like_probability(5, 0.7, 0) == pytest.approx(0.7)
    assert like_probability(-1, 0.7, 1) < 0.7 < like_probability(1, 0.7, 1) < like_probability(2, 0.7, 1)
    assert like_probability(2, 0.7, 1) == like_probability(9, 0.7, 1)


def test_comments_are_judged_once_and_missing_verdicts_stay_missing() -> None:
    verdicts = iter([{"answer": 9}, *["no number"] * 1000])
    llm = {"judge": ScriptedLLM(lambda _: next(verdicts)), "*": "rule"}
    model = HerdModel(n_agents=20, preset="counterfactual_herd", active_share=0.5, llm=llm, rng=2)
    model.run(2)
    judged = [score for one in model.treated for _, score in one.comments]
    assert judged == [9.0]
    assert len(model.world.measures.comments_table()) > 1


def test_comments_on_posts_of_users_own_are_not_judged() -> None:
    actions = ["create_post", "create_comment", "do_nothing"]
    model = HerdModel(
        n_agents=20, preset="counterfactual_herd", active_share=1, actions=actions, llm="random", memory="none", rng=1
    )
    model.run(4)
    published = {one.item_id for one in model.treated}
    on_treated = [comment for comment in model.world.measures.comments_table() if comment["post_id"] in published]
    assert 0 < len(on_treated) < len(model.world.measures.comments_table())
    assert sum(len(one.comments) for one in model.treated) == len(on_treated)


@pytest.mark.parametrize(
    ("text", "score"),
    [("Nonsense, this is simply not true.", 9), ("True, I agree.", 1), ("Not true? I doubt it.", 9), ("Hm.", 5)],
)
def test_the_rule_counts_words_of_disagreement(text, score) -> None:
    assert rule_disagreement(f"Post:\nThat is true.\n\nComment:\n{text}") == score


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not a readable JSON"),
        ("[]", "does not contain a list of posts"),
        (
            '[{"post": "a"}, {"post": " "}]',
            "entry 1: a post or comment must be a text of 1 to 5,000 characters, found ' '",
        ),
        ('[{"post": "a", "comments": "no"}]', "entry 0: a post or comment"),
        ('[{"post": "a"}, 7]', "entry 1: expected an object with a post and comments, found 7"),
        ('[{"post": "a", "comments": [["b"]]}]', "must be a text of 1 to 5,000 characters, found"),
        (
            '[{"RS": {"title": "a", "selftext": "b"}, "RC_1": {"body": "c", "group": "sideways"}}]',
            "a group must be one of",
        ),
        ('[{"RS": {"title": "a"}, "RC_1": {}}]', "expected 'post' and 'comments', or RS with title"),
    ],
)
def test_files_of_threads_are_refused_with_the_entry(tmp_path, content, message) -> None:
    path = tmp_path / "threads.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        read_threads(path)


def test_what_oasis_claims_is_the_post_where_posts_get_the_votes(tmp_path) -> None:
    path = tmp_path / "threads.json"
    entry = {"RS": {"title": "None", "selftext": "Fans say so."}, "RC_1": {"body": "It is so.", "group": "down"}}
    path.write_text(json.dumps([entry]), encoding="utf-8")
    (thread,), (claim,) = read_threads(path), read_threads(path, claims=True)
    assert (thread.post, thread.comments, claim.post, claim.comments) == (
        "Fans say so.",
        ("It is so.",),
        "It is so.",
        (),
    )
    assert thread.groups == claim.groups == ("down",)


@pytest.mark.parametrize("group", GROUPS)
def test_everything_in_a_world_of_its_own_has_the_same_first_vote(group) -> None:
    model = HerdModel(n_agents=10, preset="counterfactual_herd", first_votes=group, active_share=0, rng=1)
    model.run(2)
    assert model.scores() == {one: [GROUPS[one]] * 16 if one == group else [] for one in GROUPS}


def test_posts_and_hot_lists_grow_with_the_users_as_in_oasis() -> None:
    for n, n_posts, pool in ((100, 30, 50), (1_000, 300, 500), (10_000, 3_000, 5_000)):
        assert false_posts({"n_agents": n})["posts_per_step"] == n_posts
        model = HerdModel(n_agents=n, preset="counterfactual_herd", light=True, rng=1)
        assert model.world.settings.chosen_feed.pool == pool
    assert HERD.defaults is not None
    assert HERD.defaults({"n_agents": 3_600})["posts_per_step"] == 200
    assert HerdModel(n_agents=20, rng=1).world.settings.chosen_feed.pool == 300
    assert HerdModel(n_agents=20, pool=7, rng=1).world.settings.chosen_feed.pool == 7


@pytest.mark.skipif(not DATA, reason="needs OASIS's files in MESA_LLM_DATA")
def test_oasis_own_counterfactual_posts_keep_their_groups() -> None:
    path = str(Path(DATA or "", "oasis", "counterfactual_36.json"))
    model = HerdModel(n_agents=10, preset="counterfactual_herd", threads=path, rng=1)
    model.run(2)
    by_text = {thread.post: thread.groups[0] for thread in model.threads}
    assert len(model.threads) == 220
    assert all(by_text[model.world.post_view(one.item_id).content] == one.group for one in model.treated)


def test_each_study_draws_what_it_found() -> None:
    small_scale = replace(SCALE, arms={f"{n} users": {"n_agents": n} for n in (10, 20)})
    others = [one.run for one in STUDIES if one.name not in ("scale", "fit")]
    for run in (*others, small_scale.run):
        findings: Any = run(setup([1, 2], 3, **({} if run == small_scale.run else {"n_agents": 20})))
        assert len(findings.draw().charts) == len(findings.bands) > 0
        assert json.loads(json.dumps(findings.to_json(), allow_nan=False))["runs"] % 2 == 0


@pytest.mark.parametrize(
    ("study", "parameter"),
    [(SCALE, {"n_agents": 10}), (POLARISATION, {"leaning": "bold"}), (COUNTERFACTUAL, {"preset": "herd_effect"})],
)
def test_what_a_study_sets_itself_cannot_be_set(study, parameter) -> None:
    with pytest.raises(ConfigError, match=f"{next(iter(parameter))} cannot be set: the study {study.name} sets it"):
        study.run(setup([1], 1, **parameter))


def test_a_group_without_members_has_no_figures(tmp_path) -> None:
    (tmp_path / "threads.json").write_text('[{"post": "It rains.", "comments": ["No."]}]')
    found = HERD.run(setup([1], 1, n_agents=4, posts_per_step=1, threads=str(tmp_path / "threads.json"))).outcomes
    assert sum(math.isnan(found[f"votes hidden: score, {group}"].value) for group in GROUPS) == 2


def test_minutes_are_those_that_the_steps_last() -> None:
    model = SpreadingModel(step_minutes=3, rng=1)
    model.run(20)
    findings = study_spreading(setup([1], 20, step_minutes=3))
    assert findings.outcomes["scale at the end"].value == model.scale
    assert len(findings.bands["scale"]["twin"].mean) == 61


def test_a_study_with_a_language_model_asks_it_once_and_its_log_afterwards(tmp_path) -> None:
    small = ["--seeds", 1, "--steps", 1, "--set", "n_agents=3", "--set", "interval=1", "--out", tmp_path, "--json"]
    with FaultyServer() as server:
        command = ["polarisation", *small, "--llm", "stub", "--api-base", server.url]
        first, second = (json.loads(study(*command).stdout.splitlines()[-1]) for _ in range(2))
        assert first["calls"] == server.count == second["calls"] > 0
    assert first["tables"] == second["tables"]


def test_a_study_of_a_dead_endpoint_finds_nothing_and_says_so() -> None:
    command = ["polarisation", "--seeds", 1, "--steps", 1, "--set", "n_agents=4"]
    with FaultyServer(lambda *_: refused(400, "not now")) as server:
        done = study(*command, "--llm", "stub", "--api-base", server.url)
    assert (done.exit_code, done.stdout) == (4, "")
    assert "none of the 4 decisions of polarisation succeeded" in done.stderr


@pytest.mark.parametrize(
    ("name", "parameter", "panels"),
    [
        ("spreading", "n_agents=10", 3),
        ("polarisation", "n_agents=6", 3),
        ("groups", "sizes=10,20", 2),
        ("herd", "n_agents=10", 2),
        ("counterfactual", "n_agents=10", 2),
        ("scale", "sizes=10,20", 2),
        ("rumours", "n_agents=10", 2),
        ("ablations", "n_agents=10", len(ARMS)),
    ],
)
def test_each_study_is_one_command(name, parameter, panels, tmp_path) -> None:
    done = study(name, "--seeds", 2, "--steps", 2, "--set", parameter, "--plot", tmp_path / "figure.png", "--json")
    found = json.loads(done.stdout.splitlines()[-1])
    n_runs = {"spreading": 2, "polarisation": 8, "counterfactual": 12, "scale": 12, "ablations": 2 * len(ARMS)}.get(
        name, 4
    )
    assert (found["study"], found["runs"]) == (name, n_runs)
    assert {row["runs"] for row in found["tables"]["Figures"]} <= {0, 1, 2}  # without a value, none
    assert (tmp_path / "figure.png").stat().st_size > 0


def test_a_study_is_one_command_that_goes_on_with_its_logs(tmp_path) -> None:
    command = ["herd", "--seeds", 2, "--steps", 2, "--set", "n_agents=10", "--out", tmp_path, "--json"]
    first, second = (json.loads(study(*command, "--workers", n).stdout.splitlines()[-1]) for n in (1, 2))
    assert first["tables"] == second["tables"]
    assert len(list(tmp_path.glob("herd-*.sqlite"))) == 4
    assert "<table>" in Path(first["page"]).read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["swarm"], "oasis has no study 'swarm'; it has spreading, polarisation, herd"),
        (["herd", "--set", "herding=-1"], "greater than or equal to 0"),
        (["herd", "--set", "data=."], "--set data=.: expected name=value"),
        (["herd", "--plot", "herd.txt"], "expected a name ending in .png, .svg, .pdf"),
        (["herd", "--out", __file__], "expected the name of a folder"),
        (["fit"], "the study fit needs --set data=…"),
    ],
)
def test_a_study_that_cannot_be_is_one_line(options, message) -> None:
    done = study(*options)
    assert (done.exit_code, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert message in done.stderr


def test_the_counterfactual_study_reads_votes_into_comments() -> None:
    outcomes = COUNTERFACTUAL.run(setup(range(1, 11), 10, active_share=0.4)).outcomes
    assert ends(outcomes["herding: effect, down"])[0] > 0 > ends(outcomes["herding: effect, up"])[1]


def topic(index: int, category: str = "Business", **changes: Any) -> Topic:
    """Make a topic whose first 50 shares took two and four minutes."""
    return replace(Topic(f"topic_{index}", category, f"2014-{index:03}", 300, 3, 2.0, 4.0), **changes)


def test_topics_are_halved_by_category_and_the_one_with_a_curve_is_held_out() -> None:
    for seed in range(4):
        topics = [topic(index, "AB"[index % 3 == 0]) for index in range(12)] + [topic(12, name=CURVE_TOPIC)]
        training, held_out = split_topics(topics, seed)
        assert CURVE_TOPIC in [one.name for one in held_out]
        assert len(training) + len(held_out) == 13
        for category in "AB":
            counts = [sum(one.category == category for one in half) for half in (training, held_out)]
            assert abs(counts[0] - counts[1]) <= 1


def test_the_fit_finds_the_twin_that_made_the_topics() -> None:
    twin = Twin(15.0, 1.6, 0.4)
    made = []
    for index in range(40):
        joins = run_twin(twin, 200 + 5 * index, index)
        median, last = early_minutes(joins)
        depth = max(distance for _, distance in joins)
        made.append(topic(index, users=200 + 5 * index, depth=depth, median_minutes=median, last_minutes=last))
    assert fit_times(made) == pytest.approx((15, 1.6), rel=0.15)
    assert fit_ties(made[:6], twin).ties == pytest.approx(0.4, abs=0.2)


def curves_of(joins: Sequence[tuple[int, int]], steps: int) -> SpreadCurves:
    """Return scale, depth and max breadth minute by minute, a step a minute, from (step, distance) of each share."""
    depth = max((distance for _, distance in joins), default=0)
    counts = np.zeros((steps + 1, depth + 1), dtype=np.int64)
    counts[0, 0] = 1
    for step, distance in joins:
        counts[step, distance] += 1
    at_distance = counts.cumsum(axis=0)
    depths = np.where(at_distance > 0, np.arange(depth + 1), 0).max(axis=1)
    scale, breadth = at_distance.sum(axis=1), at_distance.max(axis=1)
    return SpreadCurves.of_steps(scale.tolist(), depths.tolist(), breadth.tolist(), 1.0)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_fast_form_of_the_twin_is_the_model(seed) -> None:
    model = SpreadingModel(n_agents=60, ties=1.0, rng=seed)
    model.run(40)
    edges = [(follower - 1, followee - 1) for follower, followee in model.world.measures.follow_edges().tolist()]
    joins = spread(edges, [agent.look_step for agent in model.agents], 40)
    fast, slow = curves_of(joins, 40), model.curves().until(41)
    for name in CURVES:
        assert getattr(fast, name).tolist() == getattr(slow, name).tolist()
    assert slow.depth[-1] > 1


def test_errors_of_curves_are_a_share_of_the_real_one() -> None:
    real = np.array([1.0, 2.0, 4.0])
    assert nrmse(real, real) == 0
    assert nrmse(real + 2, real) == nrmse(real + 2, real, "code") == 0.5
    assert nrmse(real[::-1] + 2, real[::-1], "paper") == 2  # a falling curve: the paper divides by its end
    with pytest.raises(ValueError, match="equal lengths, got 2 and 3"):
        nrmse(real[:2], real)


def test_five_baselines_know_what_they_say_they_know() -> None:
    real = SpreadCurves(*(np.arange(1.0, 21) * factor for factor in (5, 0.1, 3)))
    curves = baseline_curves(real, 200)
    assert set(curves) == set(SEES)
    assert set(curves["constant at the mean"].scale) == {real.scale.mean()}
    assert curves["persistence"].scale[9] == curves["persistence"].scale[-1] == real.scale[9]
    assert curves["everyone at once"].scale.tolist() == [1.0] + [200.0] * 19
    assert set(curves["constant one"].scale) == {1.0}
    assert curves["logarithmic fit"].scale[0] == 1
    made = [topic(0, median_minutes=math.e - 1, last_minutes=math.e**2 - 1, users=250)]
    assert log_slope(made) == pytest.approx(0.1)  # 25 of 250 after ln(1 + t) = 1, 50 after 2


def test_a_real_curve_may_be_shorter_than_what_persistence_sees() -> None:
    short = SpreadCurves(*(np.array([1.0, 3.0]) for _ in CURVES))
    assert baseline_curves(short)["persistence"].scale.tolist() == [1, 3]


@pytest.mark.skipif(not DATA, reason="needs OASIS's files in MESA_LLM_DATA")
def test_frozen_twin_beats_four_baselines_on_the_real_curve() -> None:
    folder = Path(DATA or "", "oasis")
    training, held_out = split_topics(read_topics(folder / "all_topics.csv"))
    assert (len(training), len(held_out)) == (99, 99)
    findings = study_spreading(setup([1, 2]), data=folder)
    errors = {who: findings.outcomes[f"NRMSE of scale (paper), {who}"].value for who in ("twin", *SEES)}
    assert min(errors, key=lambda who: errors[who]) == "twin"
    assert findings.outcomes["held out: depth, twin"].n == 99
    (panels,) = findings.charts()
    assert isinstance(panels, Panels)
    assert len(panels.charts) == 3
    assert log_slope(training) == pytest.approx(LOG_SLOPE, abs=5e-5)
    assert fit_times(training) == pytest.approx((FITTED.look_minutes, FITTED.look_sigma), abs=0.005)


@pytest.fixture
def two_topics(tmp_path) -> Path:
    """Write the files of two topics, whose users all follow the first."""
    for name, n in (("a", 6), ("b", 8)):
        rows = "".join(f'P{i},p{i},x,x,"[0]"\n' for i in range(n))
        (tmp_path / f"{name}.csv").write_text(f"name,username,user_char,description,following_agentid_list\n{rows}")
        real = {key: value for one in CURVES for key, value in ((one, [1, 2, 3]), (f"{one}_time", [0, 1, 3]))}
        (tmp_path / f"{name}_real_propagation.json").write_text(json.dumps(real))
    return tmp_path


def test_parts_are_taken_out_of_the_spread_of_topics(two_topics) -> None:
    findings = study_ablations(setup([1, 2], 3), data=two_topics)
    reached = {part: findings.outcomes[f"{part}: users reached, of the real ones"].value for part in TOPIC_ARMS}
    assert reached["always active"] == pytest.approx((6 + 8) / 2 / 3)
    assert reached["always active"] > reached["whole"] >= reached["no recommender"] > 0
    (panels,) = findings.charts()
    assert isinstance(panels, Panels)
    assert len(panels.charts) == len(findings.bands) == 3


def test_several_topics_are_compared_and_the_interval_is_over_topics(two_topics) -> None:
    findings = study_spreading(setup([1, 2], 4), data=two_topics)
    assert findings.cost["runs"] == 8
    whole = findings.outcomes["NRMSE of scale (paper), twin"]
    by_topic = [findings.outcomes[f"NRMSE of scale (paper), twin, {name}"].value for name in "ab"]
    assert (whole.n, whole.value) == (2, pytest.approx(fmean(by_topic)))
    assert set(findings.bands["loss of scale"]) == {"twin", "twin, real follows", *SEES}
    assert findings.bands["loss of scale"]["twin"].mean[0] == 0
    with pytest.raises(ConfigError, match="has no topic"):
        study_spreading(setup([1], 1), data=two_topics / "none")


def test_a_broken_table_of_topics_is_refused_with_the_line(tmp_path) -> None:
    path = tmp_path / "topics.csv"
    path.write_text("topic_name,num_users\na,many\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="line 2: invalid topic"):
        read_topics(path)


@pytest.mark.parametrize(("leaning", "sign"), [("cautious", -1), ("bold", 1)])
def test_a_group_that_leans_one_way_and_listens_moves_further_that_way(leaning, sign) -> None:
    model = PolarisationModel(n_agents=15, leaning=leaning, interval=8, persuasion=0.3, rng=1)
    model.run(16)
    by_step = {step: [one for one in model.verdicts if one.step == step] for step in (0, 8, 16)}
    assert {len(interview) for interview in by_step.values()} == {14}
    assert {one.change for one in by_step[0]} == {None}
    assert model.more_extreme > 0.5 > model.less_extreme
    first, last = (fmean(stance_of(one.answer) for one in by_step[step]) for step in (0, 16))
    assert sign * last > sign * first > 0


def test_nothing_is_added_to_the_personas_of_bold_users_nor_to_those_of_a_file(tmp_path) -> None:
    (tmp_path / "users.csv").write_text("name,persona\nAnn,Bakes.\nBo,Runs.\n")
    file = {"users": str(tmp_path / "users.csv")}
    for options, added in (
        ({}, f" {CAUTIOUS}"),
        ({"leaning": "bold"}, ""),
        (file, ""),
        ({**file, "stance": "Be brave."}, " Be brave."),
    ):
        model = PolarisationModel(**options, rng=1)
        people = model.population.people
        assert [one.persona for one in model.population] == [f"{one.persona}{added}" for one in people]
        assert list(model.agents)[1].config.persona.endswith(added or people[1].persona)


def test_dilemma_question_and_stance_are_ones_own_and_may_come_from_a_file(tmp_path) -> None:
    (tmp_path / "texts.json").write_text('{"dilemma": "Sea or land?", "stance": "You swim."}')
    model = PolarisationModel(n_agents=4, texts=str(tmp_path / "texts.json"), question="Which?", rng=1)
    model.step()
    assert model.world.post_view(model.root_id).content == "Sea or land?"
    assert model.question == "Sea or land?\nWhich?"
    assert {one.answer for one in model.verdicts} <= set(ANSWERS.values())
    assert all(persona.persona.endswith("You swim.") for persona in model.population)
    for content, message in (
        ("[]", "contains a list"),
        ('{"b": ""}', "no text 'b'"),
        ('{"question": 1}', "question must"),
    ):
        (tmp_path / "texts.json").write_text(content)
        with pytest.raises(ConfigError, match=message):
            PolarisationModel(texts=str(tmp_path / "texts.json"))


@pytest.mark.skipif(not DATA, reason="needs OASIS's files in MESA_LLM_DATA")
def test_all_oasis_users_discuss_its_dilemma_in_groups_of_any_size() -> None:
    path = str(Path(DATA or "", "oasis", "197_baoshou.csv"))
    small = PolarisationModel(users=path, rng=1)
    assert (len(small.agents), small.asker.unique_id) == (196, 2)
    assert small.dilemma.startswith("Helen is a talented writer")
    assert small.n_posts == 1
    large = PolarisationModel(users=path, population="oasis_x", n_agents=1_000, n_interviewed=195, light=True, rng=1)
    assert (len(large.agents), large.dilemma) == (1_000, small.dilemma)
    ids = [agent.unique_id for agent in large.interviewed]
    assert ids == [agent.unique_id for agent in small.debaters]
    assert [small.world.names[one] for one in ids] == [large.world.names[one] for one in ids]


def test_the_core_of_a_larger_group_is_that_of_the_smaller_one() -> None:
    groups = [PolarisationModel(population="oasis_x", core_users=10, n_agents=n, rng=1) for n in (10, 40)]
    assert list(groups[0].population)[:10] == list(groups[1].population)[:10]


def test_who_listens_to_nobody_stays_as_extreme_as_before() -> None:
    model = PolarisationModel(n_agents=8, persuasion=0, interval=2, rng=1)
    model.run(4)
    assert (model.more_extreme, model.less_extreme, model.neutral) == (0, 0, 1)


@pytest.mark.parametrize("stance", ANSWERS)
def test_the_rule_reads_what_the_rule_twin_says(stance) -> None:
    assert stance_of(ANSWERS[stance]) == stance


def test_a_language_model_is_interviewed_aside_and_judged_by_another() -> None:
    judge = ScriptedLLM(lambda request: {"answer": 7} if "1 (not at all)" in request.messages[-1].content else "?")
    user = ScriptedLLM(lambda request: "Keep the houses." if not request.tools else call("do_nothing"), name="user")
    model = PolarisationModel(n_agents=4, interval=1, active_share=1, llm={"judge": judge, "*": user}, rng=1)
    model.run(1)
    assert [one.answer for one in model.verdicts] == ["Keep the houses."] * 6
    assert (model.helpfulness, model.more_extreme) == (7, None)  # an unreadable verdict is none
    assert set(model.usage_by_purpose) >= {"decide", "interview", "judge", "judge_help"}


def test_posts_on_truths_and_rumours_are_counted_with_what_passes_them_on() -> None:
    model = RumourModel(n_agents=20, core_activity=1, activity=1, sharing=1, allure=0, rng=1)
    model.run(3)
    by_root = [model.stories[post["root_id"]].kind for post in model.world.measures.posts_table()]
    assert (model.rumours, model.truths) == (4, by_root.count("truth"))
    assert by_root.count("rumour") == 4 < model.truths
    assert {story.topic for story in model.stories.values()} == set(TOPICS)
    assert sum(agent.is_core for agent in model.agents) == model.n_core == 2


def test_follows_of_rumours_grow_with_the_number_of_users() -> None:
    models = [RumourModel(n_agents=n, rng=1, light=True) for n in (5_000, 10_000, 20_000)]
    assert [model.n_core for model in models] == [196] * 3
    per_user = [model.n_follows / len(model.agents) for model in models]
    assert per_user == pytest.approx([8.7] * 3, abs=0.5)  # 22 core users in each of two topics, followed with 0.2


def test_core_users_of_rumours_are_those_of_the_file_or_of_the_number_given(tmp_path) -> None:
    rows = [["a", "0"], ["b", "0"], ["c", "0,1"]]
    lines = [f'{name},{name},Reads.,Reads.,"[{followed}]","[\'An old post.\']"' for name, followed in rows]
    head = "name,username,user_char,description,following_agentid_list,previous_tweets"
    (tmp_path / "core.csv").write_text("\n".join([head, *lines]))
    model = RumourModel(
        users=str(tmp_path / "core.csv"), n_agents=50, core_activity=1, activity=0, follow_probability=1, rng=1
    )
    model.run(1)
    assert (model.n_core, len(model.agents), set(model.last_outcomes)) == (3, 50, {1, 2, 3})
    edges = model.world.measures.follow_edges().tolist()
    assert [edge for edge in edges if edge[0] <= 3] == [[2, 1], [3, 1], [3, 2]]
    assert {followee for _, followee in edges} == {1, 2, 3}
    assert model.n_posts == len(model.stories) == 8
    assert RumourModel(n_agents=50, core_users=20, rng=1).n_core == 20


def test_rule_twins_pass_on_stories_alone() -> None:
    model = RumourModel(n_agents=60, core_activity=1, activity=1, sharing=1, rng=1)
    writer = list(model.agents)[1]
    for _ in range(5):
        model.world.create_post(writer.unique_id, "A post that carries no story.")
    model.run(3)
    assert {post["root_id"] for post in model.world.measures.posts_table() if post["kind"] == "repost"} <= set(
        model.stories
    )


def test_core_users_are_active_and_followed() -> None:
    model = RumourModel(n_agents=100, core_activity=1, activity=0, rng=1)
    model.run(2)
    core = {agent.unique_id for agent in model.agents if agent.is_core}
    assert set(model.last_outcomes) == core
    assert {int(followee) for _, followee in model.world.measures.follow_edges()} == core


def test_what_is_taken_out_of_a_network_is_missed() -> None:
    changes = ABLATIONS.run(setup(range(1, 4), 24, n_agents=40)).outcomes
    assert changes["random posts: change of fit"].value < 0 < changes["interest alone: change of fit"].value
    assert changes["no hours: change of busiest over mean"].value < 0
    assert changes["no recommender: change of likes"].value < 0
    assert "no recommender: change of fit" not in changes


@pytest.mark.parametrize("name", PAGES)
def test_each_study_has_a_page_that_draws_a_single_run(name) -> None:
    page = PAGES[name]
    kind, measures = SHOWN[name]
    model = kind(rng=1, n_agents=12)
    draw = course_chart(name, measures)
    assert draw(model).charts
    model.run(2)
    assert draw(model)._repr_png_().startswith(b"\x89PNG")
    assert page.kwargs["name"]


def test_a_visitor_chooses_a_study() -> None:
    _, shown = reacton.render(solara.AppLayout(children=[Studies()]), handle_error=False)
    shown.find(vuetify.Select, label="Study").widget.v_model = "rumours"
    assert shown.find(vuetify.Slider, label="Allure of rumours: 1.5").widgets
    shown.close()
