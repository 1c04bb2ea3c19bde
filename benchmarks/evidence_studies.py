"""Published values that rules reproduce, by model, the measurement of ours, and the list of all studies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import evidence_stored as stored
import pandas as pd
from evidence_record import Claim, Reading, Readings, Study

from mesa_llm.worlds.auction import score_bidders
from mesa_llm_models.auction_arena.model import AuctionArena
from mesa_llm_models.auction_arena.scores import tournament
from mesa_llm_models.econ_agent.agents import AtRandom
from mesa_llm_models.econ_agent.model import EconAgentModel
from mesa_llm_models.econ_agent.scores import okun, regress
from mesa_llm_models.stock_agent.model import StockAgentModel
from mesa_llm_models.stock_agent.scores import gemini_paths, total_change

ROOT = Path(__file__).resolve().parents[1]
CHECKED_PROGRAM = "an independent program of the same rules, checked against recorded runs"

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
            yield Claim(f"{measure}, {policy}", fmean(values), AUTHORS, command, 3, len(values))
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
        yield Claim(f"change of A in percent, {twin}, {rules}", change_a, CHECKED_PROGRAM, command, 2, 10)
        yield Claim(f"change of B in percent, {twin}, {rules}", change_b, CHECKED_PROGRAM, command, 2, 10)
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
    Study("cognitive_biases", list(stored.bias_claims()), stored.biases, 200, note="200 tests of each bias, our own."),
    Study(
        "econ_agent",
        list(econ_claims()),
        economies,
        10,
        note="100 households, 240 months, rules of the authors, seeds 1 to 10.",
    ),
    Study("emergent_analogies", list(stored.analogy_claims()), stored.analogies, data="emergent_analogies"),
    Study("emotionbench", list(stored.emotion_claims()), stored.emotions),
    Study("psychobench", list(stored.norm_claims()), stored.norms_read, data="psychobench"),
    Study("sotopia", list(stored.dyad_claims()), stored.dyads),
    Study(
        "stock_agent",
        list(stock_claims()),
        exchanges,
        10,
        note="50 traders, 10 days of 3 sessions, seeds 0 to 9, changes from the price before the first session.",
    ),
]
"""Studies on the page, in order."""
