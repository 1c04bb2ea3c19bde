"""Published values that rules, random choices and stored data reproduce, by model, and the measurement of ours."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import pandas as pd
from evidence_record import Claim, Reading, Readings, Study

from mesa_llm.experiments.benchmarks import find_task, mean_absolute_error
from mesa_llm_models.auction_arena.model import AuctionArena
from mesa_llm_models.auction_arena.scores import tournament
from mesa_llm_models.auction_arena.world import score_bidders
from mesa_llm_models.cognitive_biases.model import CognitiveBiasesModel
from mesa_llm_models.cognitive_biases.scores import published
from mesa_llm_models.econ_agent.agents import AtRandom
from mesa_llm_models.econ_agent.model import EconAgentModel
from mesa_llm_models.econ_agent.scores import okun, regress
from mesa_llm_models.emergent_analogies.items import letters, matrices
from mesa_llm_models.emotionbench import scores as emotionbench
from mesa_llm_models.psychobench.items import read_original
from mesa_llm_models.psychobench.task import norms
from mesa_llm_models.sotopia import scores as sotopia
from mesa_llm_models.stock_agent.model import StockAgentModel
from mesa_llm_models.stock_agent.scores import gemini_paths, total_change

ROOT = Path(__file__).resolve().parents[1]
CHECKED_PROGRAM = "an independent program of the same rules, checked against recorded runs"


def data_file(*parts: str) -> Path:
    """Return the path of a file of the original projects, in the folder that `MESA_LLM_DATA` names."""
    return Path(os.environ["MESA_LLM_DATA"], *parts)


# -- auction_arena

SEATS = [
    (20_000, "random", "scan", (4728, 4971, 5295)),
    (20_000, "random", "uniform", (4985, 4966, 4992)),
    (20_000, "ascending", "scan", (5301, 5086, 5188)),
    (20_000, "descending", "scan", (4278, 4885, 5435)),
    (40_000, "random", "scan", (3633, 4696, 6296)),
    (40_000, "random", "uniform", (4829, 4851, 4935)),
]
"""Budget, order of lots, rule for ties → mean profits of three rule bidders by seat."""

AGAINST_TWO_RULES = {
    20_000: {"rule": (5000, 3.34), "value": (5056, 4.56), "shade": (5433, 4.43), "zero": (2026, 2.35)},
    40_000: {"rule": (4850, 3.32), "value": (10268, 8.35), "shade": (10192, 7.60), "zero": (-185, 0.72)},
}
"""Budget → rule twin → mean profit and lots of one against two rule bidders."""

AUCTIONS = "mesa-llm run auction_arena --steps 1000000 --set planning=none --rng 1 --json"


def auction_claims() -> Iterator[Claim]:
    for budget, order, tie, profits in SEATS:
        command = f"{AUCTIONS} --set twins=rule --set rotate=false --set n_auctions=200 --set budget={budget}"
        for seat, profit in enumerate(profits, 1):
            quantity = f"profit of seat {seat}, {budget:,} dollars, {order} order, {tie} ties"
            yield Claim(quantity, profit, CHECKED_PROGRAM, f"{command} --set order={order} --set tie={tie}", 0, 2000)
    for budget, twins in AGAINST_TWO_RULES.items():
        for twin, (profit, lots) in twins.items():
            command = f"{AUCTIONS} --set twins={twin},rule,rule --set n_auctions=200 --set budget={budget}"
            against = f"{twin} against two rule bidders, {budget:,} dollars"
            yield Claim(f"profit of {against}", profit, CHECKED_PROGRAM, command, 0, 1500)
            yield Claim(f"lots of {against}", lots, CHECKED_PROGRAM, command, 2, 1500)


def auctions(n_runs: int) -> Readings:
    found: dict[str, Reading] = {}
    for budget, order, tie, _ in SEATS:
        setting: dict[str, Any] = {"budget": budget, "order": order, "tie": tie, "n_auctions": n_runs}
        model = AuctionArena(twins="rule", rotate=False, planning="none", rng=1, **setting)
        model.run_for(1_000_000)
        games = [score_bidders(auction) for auction in model.finished_auctions]
        for seat in range(3):
            quantity = f"profit of seat {seat + 1}, {budget:,} dollars, {order} order, {tie} ties"
            found[quantity] = Reading.of([float(game[seat].profit) for game in games])
    for budget, twins in AGAINST_TWO_RULES.items():
        for twin in twins:
            contestants = {"measured": twin, "first": "rule", "second": "rule"}
            model = tournament(contestants, n_runs, budget=budget, planning="none", rng=1)
            scores = [
                score
                for auction in model.finished_auctions
                for score in score_bidders(auction)
                if score.name == "measured"
            ]
            against = f"{twin} against two rule bidders, {budget:,} dollars"
            found[f"profit of {against}"] = Reading.of([float(score.profit) for score in scores])
            found[f"lots of {against}"] = Reading.of([float(score.n_wins) for score in scores])
    return found


# -- econ_agent

POLICIES = {
    "composite": {
        "phillips_r": (0.8670, 0.7384, 0.8629),
        "okun_r": (-0.8916, -0.9539, -0.8923),
        "okun_nominal_r": (-0.1165, 0.0402, -0.1774),
        "unemployment_mean": (0.0351, 0.0312, 0.0384),
        "unemployment_min": (0.0167, 0.0142, 0.0133),
        "unemployment_max": (0.0792, 0.0550, 0.0783),
        "inflation_mean": (0.0150, 0.0152, 0.0241),
        "inflation_min": (-0.1654, -0.1358, -0.1617),
        "inflation_max": (0.2113, 0.2382, 0.2361),
    },
    "len": {
        "phillips_r": (0.7559, 0.7496, 0.8094),
        "okun_r": (-0.8584, -0.8816, -0.8985),
        "okun_nominal_r": (0.1145, -0.0360, -0.0452),
        "unemployment_mean": (0.0285, 0.0274, 0.0256),
        "unemployment_min": (0.0108, 0.0125, 0.0092),
        "unemployment_max": (0.0783, 0.0633, 0.0575),
        "inflation_mean": (0.0055, 0.0013, 0.0011),
        "inflation_min": (-0.1983, -0.1933, -0.1651),
        "inflation_max": (0.2283, 0.1829, 0.1547),
    },
    "cats": {
        "phillips_r": (0.6450, 0.7142, 0.5947),
        "okun_r": (-0.9633, -0.9603, -0.9604),
        "okun_nominal_r": (-0.1581, -0.0750, 0.2682),
        "unemployment_mean": (0.0319, 0.0361, 0.0297),
        "unemployment_min": (0.0175, 0.0175, 0.0167),
        "unemployment_max": (0.0575, 0.0625, 0.0450),
        "inflation_mean": (0.0130, 0.0166, 0.0034),
        "inflation_min": (-0.1652, -0.1680, -0.1114),
        "inflation_max": (0.2790, 0.2458, 0.1966),
    },
    "random, work 0.9": {
        "phillips_r": (-0.1945, 0.2094, -0.0353),
        "okun_r": (-0.9964, -0.9939, -0.9940),
        "okun_nominal_r": (0.0332, -0.1016, 0.0749),
        "unemployment_mean": (0.0975, 0.0990, 0.1048),
        "unemployment_min": (0.0825, 0.0800, 0.0833),
        "unemployment_max": (0.1117, 0.1117, 0.1208),
        "inflation_mean": (0.0133, 0.0166, 0.0174),
        "inflation_min": (-0.1992, -0.1160, -0.1560),
        "inflation_max": (0.2326, 0.1735, 0.2321),
    },
    "random, work 0.5": {
        "phillips_r": (-0.1780, 0.0495, 0.0394),
        "okun_r": (-0.9978, -0.9995, -0.9992),
        "okun_nominal_r": (-0.1910, -0.1396, -0.3948),
        "unemployment_mean": (0.5023, 0.5050, 0.5024),
        "unemployment_min": (0.4767, 0.4917, 0.4825),
        "unemployment_max": (0.5283, 0.5192, 0.5250),
        "inflation_mean": (0.0179, 0.0204, 0.0074),
        "inflation_min": (-0.2113, -0.2540, -0.1554),
        "inflation_max": (0.2467, 0.3062, 0.2257),
    },
}
"""Policy of the households → measure → values of three seeds."""

POINT, R_APART = 0.01, 0.1
"""Distance within which a rate of unemployment or inflation agrees, and a correlation."""

AUTHORS = "three seeds of the authors' own environment, commit bfada09"
FIGURES = "read off the authors' figures, `models/mesa_llm_models/econ_agent/data/SOURCE.md`"
YEARS = ROOT / "models" / "mesa_llm_models" / "econ_agent" / "data" / "published_years.csv"


def econ_claims() -> Iterator[Claim]:
    for policy, measures in POLICIES.items():
        name = policy.partition(",")[0]
        command = f"mesa-llm sweep econ_agent --steps 240 --set n_agents=100 --set rules=original --set policy={name}"
        if policy == "random, work 0.5":
            command = "python3 dev.py evidence econ_agent"
        for measure, values in measures.items():
            margin = R_APART if measure.endswith("_r") else POINT
            yield Claim(f"{measure}, {policy}", fmean(values), AUTHORS, command, 3, len(values), margin)
    again = "python3 dev.py evidence econ_agent"
    yield Claim("okun_r, GPT-3.5, from its yearly unemployment", -0.918, FIGURES, again, 3)
    yield Claim("mean unemployment, GPT-3.5, 20 years", 0.0784, FIGURES, again, 4)
    yield Claim("phillips_r, Llama-2, from its yearly points", -0.869, FIGURES, again, 3)


def economies(n_runs: int) -> Readings:
    found: dict[str, Reading] = {}
    for policy, measures in POLICIES.items():
        runs: list[dict[str, Any]] = []
        for seed in range(1, n_runs + 1):
            name: Any = policy.partition(",")[0]
            model = EconAgentModel(n_agents=100, rules="original", policy=name, rng=seed)
            if policy == "random, work 0.5":
                for agent in model.agents:
                    agent.policy = AtRandom(0.5)
            model.run_for(240)
            runs.append(model.results())
        found |= {f"{measure}, {policy}": Reading.of([run[measure] for run in runs]) for measure in measures}
    return found | published_years()


def published_years() -> dict[str, Reading]:
    """Compute the statistics of the yearly points in the published figures."""
    table: Any = pd.read_csv(YEARS)
    gpt, llama = table[table["model"] == "GPT-3.5"], table[table["model"] == "Llama-2"]
    rate = gpt["unemployment"].dropna().iloc[:20]
    growth = pd.DataFrame(
        {
            "unemployment": rate,
            "unemployment_growth": rate.pct_change(),
            "real_growth": (1 - rate).pct_change(),
        }
    )
    return {
        "okun_r, GPT-3.5, from its yearly unemployment": Reading(len(rate) - 1, okun(growth).r),
        "mean unemployment, GPT-3.5, 20 years": Reading(len(rate), float(rate.mean())),
        "phillips_r, Llama-2, from its yearly points": Reading(
            len(llama), regress(llama["unemployment"], llama["wage_inflation"]).r
        ),
    }


# -- cognitive_biases

HEAT_MAP = "the authors' heat-map of 2024-10-14, `models/mesa_llm_models/cognitive_biases/data/published.csv`"
MODELS = [
    "GPT-4o",
    "GPT-4o-mini",
    "GPT-3.5-Turbo",
    "Llama 3.1 405B",
    "Llama 3.1 70B",
    "Llama 3.1 8B",
    "Llama 3.2 3B",
    "Llama 3.2 1B",
    "Gemini 1.5 Pro",
    "Gemini 1.5 Flash",
    "Gemma 2 27B",
    "Gemma 2 9B",
    "Mistral Small",
    "Mistral Large 2",
    "WizardLM 2 8x22B",
    "WizardLM-2-7B",
    "Phi 3",
    "Qwen2.5 72B",
    "Yi-Large",
    "Random",
]
"""Columns of the heat-map."""

AVERAGE = "Average of models (incl. Random)"
BY_CHANCE = "mesa-llm run cognitive_biases --llm random --steps 200 --set n_tests=200 --set conservatism_rule=2024"


def bias_claims() -> Iterator[Claim]:
    for bias, mean in published("Random").items():
        command = f"{BY_CHANCE} --rng 1 --json"
        yield Claim(f"mean score of random choices, {bias}", mean, HEAT_MAP, command, 2, 1000, 0.1)
    stored = "python3 dev.py evidence cognitive_biases"
    baseline = find_task("cognitive_biases").published
    if baseline:
        quantity = "distance of random choices from GPT-4o-mini, 30 biases"
        yield Claim(quantity, baseline.baseline, baseline.source, stored)
    yield Claim("biases whose average over 20 columns is the printed one", 30, HEAT_MAP, stored, 0)


def biases(n_runs: int) -> Readings:
    model = CognitiveBiasesModel(n_tests=n_runs, conservatism_rule="2024", llm="random", rng=1)
    model.run_for(n_runs)
    found = {
        f"mean score of random choices, {one.bias}": Reading(one.n, one.mean, one.se * math.sqrt(one.n))
        for one in model.scores()
    }
    columns = [published(name) for name in MODELS]
    printed = published(AVERAGE)
    rounding = 0.005 + 0.005  # of the average, and of the twenty values
    same = [bias for bias, mean in printed.items() if abs(fmean(one[bias] for one in columns) - mean) <= rounding]
    found["biases whose average over 20 columns is the printed one"] = Reading(len(printed), len(same))
    distance = mean_absolute_error(published("Random"), published("GPT-4o-mini"))
    return found | {"distance of random choices from GPT-4o-mini, 30 biases": Reading(len(printed), distance)}


# -- emergent_analogies

REPLIES = "replies of text-davinci-003 in the authors' repository, with their verdicts"


def analogy_claims() -> Iterator[Claim]:
    command = "MESA_LLM_DATA=FOLDER python3 dev.py evidence emergent_analogies"
    yield Claim("verdicts on stored replies to matrices", 85, REPLIES, command, 0)
    yield Claim("verdicts on stored replies to letter strings", 83, REPLIES, command, 0)
    yield Claim("answers to stored matrices, by rule", 68, REPLIES, command, 0)


def analogies(n_runs: int) -> Readings:
    stored = json.loads(data_file("emergent_analogies", "stored_problems_and_replies.json").read_text("utf-8"))
    digits, strings = stored["matrix_recorded_responses"], stored["letterstring_recorded_responses"]
    problems = stored["matrix_problems"]
    return {
        "verdicts on stored replies to matrices": Reading(len(digits), sum(map(is_verdict_on_matrix, digits))),
        "verdicts on stored replies to letter strings": Reading(len(strings), sum(map(is_verdict_on_string, strings))),
        "answers to stored matrices, by rule": Reading(len(problems), sum(map(is_solved, problems))),
    }


def is_verdict_on_matrix(case: Any) -> bool:
    """Check whether our verdict on a stored reply to a matrix is that of its authors."""
    right = matrices.is_right(case["response"], case["correct_answer"], case["perm_invariant"])
    return right == case["expected"]


def is_verdict_on_string(case: Any) -> bool:
    """Check whether our verdict on a stored reply to a letter string is that of its authors.

    Their program fails on some replies, which count as wrong.
    """
    form: Any = "sentence" if case["format"] == "sentence" else "lead"
    expected = case["expected"] is True
    return letters.is_right(case["response"], case["correct_answer"], form) == expected


def is_solved(case: Any) -> bool:
    """Check whether the solver finds the stored answer of a matrix."""
    cells = tuple(tuple(tuple(cell) for cell in row) for row in case["matrix"])
    matrix = matrices.Matrix(case["type"], cells, case["perm_invariant"])
    answer = tuple(case["correct_answer"])
    return matrices.solve(matrix) == (tuple(sorted(answer)) if matrix.is_set else answer)


# -- emotionbench

SHEETS = "means by emotion, `models/mesa_llm_models/emotionbench/data/published.csv`"


def emotion_claims() -> Iterator[Claim]:
    for one in emotionbench.published():
        if not one.emotion and not one.is_default:
            quantity = f"{one.subscale} over all emotions, {one.respondent}"
            yield Claim(quantity, one.summary.mean, SHEETS, "python3 dev.py evidence emotionbench", 4)


def emotions(n_runs: int) -> Readings:
    table = emotionbench.published()
    found: dict[str, Reading] = {}
    for one in table:
        if one.emotion or one.is_default:
            continue
        parts = [other.summary for other in table if other.emotion and is_alike(one, other)]
        n = sum(part.n for part in parts)
        mean = sum(part.mean * part.n for part in parts) / n
        found[f"{one.subscale} over all emotions, {one.respondent}"] = Reading(n, mean)
    return found


def is_alike(one: emotionbench.Published, other: emotionbench.Published) -> bool:
    """Check whether two means are of the same respondent and subscale."""
    return (one.respondent, one.subscale) == (other.respondent, other.subscale)


# -- psychobench

NORMS = "questionnaires.json of the authors' repository, `models/mesa_llm_models/psychobench/data/norms.csv`"


def norm_claims() -> Iterator[Claim]:
    command = "MESA_LLM_DATA=FOLDER python3 dev.py evidence psychobench"
    yield Claim("first norms of people, as the loader reads them", 69, NORMS, command, 0)


def norms_read(n_runs: int) -> Readings:
    written = norms()
    read = {
        f"{instrument.name}: {subscale.name}": subscale.norms[0].mean
        for instrument in read_original(data_file("psychobench", "questionnaires.json"))
        for subscale in instrument.subscales
    }
    same = sum(read.get(name) == mean for name, mean in written.items())
    return {"first norms of people, as the loader reads them": Reading(len(written), same)}


# -- sotopia

TABLE = "Zhou et al. (2024), table of models, `models/mesa_llm_models/sotopia/data/published.json`"
OVERALL = {
    "GPT-4": (3.31, 0.760),
    "GPT-3.5": (2.93, 0.722),
    "Llama-2-70b-chat": (2.52, 0.681),
    "MPT-30b-chat": (1.87, 0.615),
}
"""Model → mean of its seven dimensions, as printed and on the scale of each, from 0 to 1."""


def dyad_claims() -> Iterator[Claim]:
    for name, (mean, share) in OVERALL.items():
        yield Claim(f"mean of seven dimensions, {name}", mean, TABLE, "python3 dev.py evidence sotopia", 2)
        yield Claim(f"mean of seven shares of the scale, {name}", share, TABLE, "python3 dev.py evidence sotopia", 3)


def dyads(n_runs: int) -> Readings:
    table: Any = sotopia.published()
    found: dict[str, Reading] = {}
    for name in OVERALL:
        rows = table[(table["model"] == name) & table["setting"].str.startswith("all 90")]
        values = dict(zip(rows["measure"], rows["value"], strict=True))
        by_name = {one.name: values[one.code] for one in sotopia.STANDARD}
        found[f"mean of seven dimensions, {name}"] = Reading(7, fmean(values.values()))
        shares = fmean(sotopia.normalised(by_name).values())
        found[f"mean of seven shares of the scale, {name}"] = Reading(7, shares)
    return found


# -- stock_agent

TRADERS = {
    ("zero_intelligence", "one_sided"): (-7.67, -6.88, 928),
    ("fundamentalist", "one_sided"): (1.03, 0.55, 1137),
    ("fundamentalist", "original"): (-4.53, -5.17, 1142),
    ("chartist", "one_sided"): (11.93, -6.57, 275),
    ("mixed", "one_sided"): (1.27, -3.37, 987),
    ("mixed", "original"): (0.80, -2.63, 989),
}
"""Rule of the traders, and rules of the exchange → change of A and B in percent, trades."""

EXCHANGE = "mesa-llm sweep stock_agent --rng 0 --steps 60 --set n_agents=50"
GEMINI = "the authors' run with 50 Gemini-Pro traders, git history f78c082"


def setting_of(rules: str) -> dict[str, str]:
    """Return the parameters of the exchange for the name of its rules in the table."""
    return {"rules": "original"} if rules == "original" else {"settlement": rules}


def stock_claims() -> Iterator[Claim]:
    for (twin, rules), (change_a, change_b, trades) in TRADERS.items():
        chosen = " ".join(f"--set {name}={value}" for name, value in setting_of(rules).items())
        command = f"{EXCHANGE} --set twin={twin} {chosen}"
        yield Claim(f"change of A in percent, {twin}, {rules}", change_a, CHECKED_PROGRAM, command, 2, 10, 5.0)
        yield Claim(f"change of B in percent, {twin}, {rules}", change_b, CHECKED_PROGRAM, command, 2, 10, 5.0)
        yield Claim(f"trades, {twin}, {rules}", trades, CHECKED_PROGRAM, command, 0, 10)
    again = "python3 dev.py evidence stock_agent"
    yield Claim("change of A, Gemini-Pro, first ten days, first to last close", -8.62, GEMINI, again)
    yield Claim("change of B, Gemini-Pro, first ten days, first to last close", -7.44, GEMINI, again)
    yield Claim("change of A, Gemini-Pro, 43 days, from the first price", -39.67, GEMINI, again)
    yield Claim("change of B, Gemini-Pro, 43 days, from the first price", -19.75, GEMINI, again)


def exchanges(n_runs: int) -> Readings:
    found: dict[str, Reading] = {}
    for twin, rules in TRADERS:
        runs: list[tuple[float, float, float]] = []
        for seed in range(n_runs):
            model = StockAgentModel(n_agents=50, twin=twin, rng=seed, **setting_of(rules))  # type: ignore[arg-type]
            model.run_for(60)
            paths = model.world.market.paths
            changes = (total_change(paths["A"]), total_change(paths["B"]))
            runs.append((*changes, float(len(model.world.market.history.trades))))
        quantities = (f"change of A in percent, {twin}, {rules}", f"change of B in percent, {twin}, {rules}")
        for column, quantity in enumerate((*quantities, f"trades, {twin}, {rules}")):
            found[quantity] = Reading.of([run[column] for run in runs])
    paths = gemini_paths()
    for stock in ("A", "B"):
        path = paths[stock]
        found[f"change of {stock}, Gemini-Pro, first ten days, first to last close"] = Reading(
            30, total_change(path[1:31])
        )
        found[f"change of {stock}, Gemini-Pro, 43 days, from the first price"] = Reading(
            len(path) - 1, total_change(path)
        )
    return found


# -- all

STUDIES = [
    Study(
        "auction_arena",
        list(auction_claims()),
        auctions,
        200,
        note="200 auctions in each setting, seed 1.",
    ),
    Study("cognitive_biases", list(bias_claims()), biases, 200, note="200 tests of each bias, our own."),
    Study(
        "econ_agent",
        list(econ_claims()),
        economies,
        10,
        note="100 households, 240 months, rules of the authors, seeds 1 to 10.",
    ),
    Study("emergent_analogies", list(analogy_claims()), analogies, data="emergent_analogies"),
    Study("emotionbench", list(emotion_claims()), emotions),
    Study("psychobench", list(norm_claims()), norms_read, data="psychobench"),
    Study("sotopia", list(dyad_claims()), dyads),
    Study(
        "stock_agent",
        list(stock_claims()),
        exchanges,
        10,
        note="50 traders, 10 days of 3 sessions, seeds 0 to 9, changes from the price before the first session.",
    ),
]
"""Studies on the page, in order."""
