"""Published values that only language models or people can reproduce, each with the command that measures the same.

We have not paid for these runs: the values are as published.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evidence_measured import MODELS
from evidence_record import LLMClaim

from mesa_llm.experiments.benchmarks import find_tasks
from mesa_llm_models.cognitive_biases.scores import published as heat_map
from mesa_llm_models.compost.task import EXAGGERATION
from mesa_llm_models.emotionbench.scores import Published
from mesa_llm_models.emotionbench.scores import published as affect
from mesa_llm_models.sotopia.scores import published as dyads

SHACHI = "Shachi (2025)"
WEBB = "Webb et al. (2023), stored results of their repository"
AUCARENA = "Chen et al. (2023), arXiv 2310.05746"
NOTES = "reading notes on arXiv 2310.01386, tables 3 to 6; a secondary source"

AUCTIONS = "mesa-llm run auction_arena --steps 1000000 --set n_auctions=10 --set memory=chat:10000 --llm MODEL"
ORIGINAL = "--set rules=original --set fidelity=original"
PEOPLE = "mesa-llm run auction_arena --steps 1000000 --llm human"


def bench(name: str) -> str:
    """Return the command that measures a language model at a task, on the published items."""
    return f"mesa-llm bench {name} --items original --llm MODEL"


def values_text(values: Mapping[str, Any]) -> str:
    """Write several values after their names."""
    return ", ".join(f"{name} {value}" for name, value in values.items())


# -- Shachi

DESIGNS = {
    "EmergentAnalogies (language model only)": (1.00, 1.08, 0.62, 1.01),
    "StockAgent (config, memory, tools)": (1.01, 1.00, 0.99, 1.00),
    "AuctionArena (config, memory)": (1.00, 0.93, 1.00, 0.99),
    "Sotopia (memory)": (1.00, 0.93, 0.92, 1.00),
}
"""Design → score relative to the task's own design, on the four tasks in the same order."""

ON_TASKS = ("EmergentAnalogies", "StockAgent", "AuctionArena", "Sotopia")

TABLE_3 = {"matched orders": (10.0, 20.0), "buy orders": (8.4, 6.1), "sell orders": (6.6, -8.5)}
"""Measure → change in percent of stock A and B with a social network beside the exchange, three runs."""


def shachi() -> list[LLMClaim]:
    rows = [
        LLMClaim(
            f"error at {name}: Shachi's agent; its baseline ({task.published.setting})",
            f"{task.published.agent}; {task.published.baseline}",
            task.published.source,
            bench(name),
        )
        for name, task in find_tasks()[0].items()
        if task.published
    ]
    cross = "mesa-llm bench --cross --llm MODEL"
    for design, scores in DESIGNS.items():
        relative = values_text(dict(zip(ON_TASKS, scores, strict=True)))
        rows.append(
            LLMClaim(f"score relative to each task's own design: {design}", relative, f"{SHACHI}, Table 2", cross)
        )
    for measure, (stock_a, stock_b) in TABLE_3.items():
        change = f"A {stock_a:+}, B {stock_b:+} percent"
        rows.append(
            LLMClaim(f"{measure} with a social network beside the exchange", change, f"{SHACHI}, Table 3", WORLDS)
        )
    rows += [
        LLMClaim("prices of A and B with a social network", "rise less than without", f"{SHACHI}, Figure 6", WORLDS),
        LLMClaim("hyperbolic discounting, in-group bias with OASIS's memory", "rise", f"{SHACHI}, Figure 5", MEMORY),
        LLMClaim("endowment effect with EconAgent's memory", "rises", f"{SHACHI}, Figure 5", MEMORY),
        LLMClaim("loss aversion, survivorship bias with EconAgent's memory", "fall", f"{SHACHI}, Figure 5", MEMORY),
        LLMClaim("unemployment with GPT-4.1 nano", "above other models'", f"{SHACHI}, Figure 4", SWAP),
        LLMClaim("growth of GDP with GPT-4.1", "markedly stronger", f"{SHACHI}, Figure 4", SWAP),
        LLMClaim("Phillips curve and Okun's law, all models", "present", f"{SHACHI}, Figure 4", SWAP),
        LLMClaim("indicators of the economy, all models", "change, and differ in detail", f"{SHACHI}, Figure 7", SWAP),
        LLMClaim("prices over the sessions", "close to the original's", f"{SHACHI}, Figure 3", PRICES),
        LLMClaim("priorities of the remaining lots", "plotted only", f"{SHACHI}, Figure 3", PRIORITIES),
    ]
    return rows


PRICES = "mesa-llm study shachi prices --llm MODEL"
PRIORITIES = "mesa-llm study shachi priorities --llm MODEL"
WORLDS = "mesa-llm study shachi worlds --llm MODEL"
MEMORY = "mesa-llm study shachi memory --llm MODEL"
SWAP = "mesa-llm study shachi swap --llm MODEL,OTHER"

# -- auction_arena

RHO = {
    "Mistral-7b": (0.1252, 0.2728, 0.1139, 0.2779),
    "Mixtral-8x7b": (0.3553, 0.4028, 0.3994, 0.4327),
    "Gemini-1.0-Pro": (0.2457, 0.1349, 0.2776, 0.2442),
    "GPT-3.5-Turbo": (0.1849, 0.043, 0.1494, 0.0801),
    "GPT-4": (0.3741, 0.3959, 0.6318, 0.6443),
    "GPT-4-Turbo": (0.2348, 0.0715, 0.6423, 0.4328),
}
"""Model → rank correlation of initial priorities with bids and wins, and of current ones."""

PROFITS = {
    "GPT-4-Turbo": {"random": (8712.5, 5.0), "ascending": (7525.0, 5.0), "descending": (8287.5, 4.3)},
    "GPT-3.5-Turbo": {"random": (3325.0, 1.0), "ascending": (2875.0, 1.3), "descending": (950.0, 0.5)},
    "people": {"random": (7237.5, 3.8), "ascending": (10862.5, 3.8), "descending": (10025.0, 5.0)},
}
"""Bidder → order of lots → mean profit in dollars, mean number of lots, with 20,000 dollars and three bidders."""


def auctions() -> list[LLMClaim]:
    labels = ("initial with bids", "initial with wins", "current with bids", "current with wins")
    rows = [
        LLMClaim(
            f"rank correlation of priorities, {model}",
            values_text(dict(zip(labels, values, strict=True))),
            f"{AUCARENA}, Figure 6",
            AUCTIONS,
        )
        for model, values in RHO.items()
    ]
    for bidder, orders in PROFITS.items():
        for order, (profit, lots) in orders.items():
            command = (PEOPLE if bidder == "people" else AUCTIONS) + f" --set order={order}"
            published = f"{profit:,} dollars, {lots} lots"
            rows.append(
                LLMClaim(f"profit and lots of {bidder}, {order} order", published, f"{AUCARENA}, Table 2", command)
            )
    rows += [
        LLMClaim("failed bids of GPT-4, the fewest", "0.21 percent", f"{AUCARENA}, section 4.2", AUCTIONS),
        LLMClaim(
            "TrueSkill of each model", "plotted only; GPT-4 best", f"{AUCARENA}, Figure 2", bench("auction_arena")
        ),
        LLMClaim(
            "adaptive plans against static or none",
            "plotted only; adaptive better",
            f"{AUCARENA}, Figure 7",
            f"{AUCTIONS} --set planning=adaptive,static,none",
        ),
        LLMClaim(
            "bidders for profit and for lots, 20 lots",
            "plotted only; niches with larger budgets",
            f"{AUCARENA}, Figure 8",
            f"{AUCTIONS} --set lots=niche --set desire=maximize_profit,maximize_items",
        ),
    ]
    return rows


# -- the single agents


def biases() -> list[LLMClaim]:
    command = "mesa-llm bench cognitive_biases --set cognitive_biases.tests=FILE --llm MODEL"
    rows: list[LLMClaim] = []
    for name in MODELS:
        if name != "Random":
            means = sorted(heat_map(name).values())
            published = f"30 means from {means[0]} to {means[-1]}, their mean {sum(means) / len(means):.2f}"
            rows.append(
                LLMClaim(f"mean score of each bias, {name}", published, "the authors' heat-map of 2024-10-14", command)
            )
    return rows


def affects() -> list[LLMClaim]:
    table = affect()
    rows: list[LLMClaim] = []
    for name in dict.fromkeys(one.respondent for one in table):
        means = {(one.is_default, one.subscale): one for one in table if one.respondent == name and not one.emotion}
        published = "; ".join(affect_text(subscale, means) for subscale in ("Positive Affect", "Negative Affect"))
        source = "recomputed by the authors' code from their raw sheets"
        command = "mesa-llm run emotionbench --llm human" if name == "human-crowd" else bench("emotionbench")
        rows.append(
            LLMClaim(f"affect by default, and over all situations, {name} (and by emotion)", published, source, command)
        )
    paper = "Huang et al. (2024), arXiv 2308.03656"
    rows += [
        LLMClaim(
            "change from negative to positive situations, gpt-3.5-turbo, over all emotions",
            "Positive Affect +14.3, Negative Affect -10.4",
            f"{paper}, Table 4",
            bench("emotionbench"),
        ),
        LLMClaim(
            "change of eight challenging scales, gpt-3.5-turbo",
            "AGQ +1.3, DASS-21 -2.3, BDI-II +6.4, FDS -7.5, MJS -0.1, GASP -2.6, FSS-III -0.3, BFNE +0.2",
            f"{paper}, Table 5",
            bench("emotionbench"),
        ),
    ]
    return rows


def affect_text(subscale: str, means: Mapping[tuple[bool, str], Published]) -> str:
    """Write a respondent's affect by default, and in all situations together."""
    return f"{subscale} {means[True, subscale].summary.mean:.1f}, {means[False, subscale].summary.mean:.1f}"


TRAITS = {
    "gpt-4": "BFI agreeableness 4.8, conscientiousness 4.7, neuroticism 1.6; DTDD psychopathy 1.2; EPQ-R lying 18.0; "
    "EIS 151.4; Empathy 6.8; GSE 39.9",
    "gpt-4, jailbroken": "BFI agreeableness 3.9, conscientiousness 3.9, neuroticism 2.2; DTDD psychopathy 4.7; "
    "EIS 121.8; Empathy 4.6",
    "gpt-3.5-turbo": "BFI agreeableness 4.4; DTDD Machiavellianism 5.4, narcissism 6.6; EPQ-R lying 9.6; EIS 132.9; "
    "Empathy 6.2",
    "text-davinci-003": "LOT-R 24.0",
}
"""Language model → scores of PsychoBench's scales."""

ANALOGIES = [
    ("matrices, free response, text-davinci-003", "one rule 1.00, two .854, three .693, logic .800", ""),
    ("matrices, free response, 43 people", "one rule .849, two .578, three .523, logic .386", ""),
    (
        "matrices, multiple choice, text-davinci-003",
        "one rule 1.00, two .913, three .933, logic .850",
        "answers=choice",
    ),
    ("matrices, multiple choice, 43 people", "one rule .857, two .690, three .621, logic .512", "answers=choice"),
    (
        "matrices in one context, free response, text-davinci-003",
        "one to five rules .817, .775, .845, .725, .620",
        "more_rules=true memory=chat",
    ),
    (
        "matrices in one context, free response, 47 people",
        "one to five rules .890, .777, .755, .751, .706",
        "more_rules=true memory=chat",
    ),
    (
        "matrices in one context, multiple choice, text-davinci-003",
        "one to five rules .817, .942, .975, .990, .980",
        "more_rules=true memory=chat answers=choice",
    ),
    (
        "matrices in one context, multiple choice, 47 people",
        "one to five rules .901, .862, .855, .826, .855",
        "more_rules=true memory=chat answers=choice",
    ),
    (
        "letter strings, text-davinci-003",
        "none to three generalisations .713, .503, .357, .243; real world .600",
        "task=letters",
    ),
    (
        "letter strings, brackets alone, text-davinci-003",
        "none to three generalisations .650, .340, .273, .223; real world .490",
        "task=letters form=bare",
    ),
    (
        "letter strings as a sentence, text-davinci-003",
        "none to three generalisations .603, .463, .287, .207; real world .370",
        "task=letters form=sentence",
    ),
    ("letter strings, 57 people", "none to three generalisations .585, .421, .348, .284", "task=letters"),
    (
        "verbal analogies, text-davinci-003",
        "category 1.00, function .85, opposite .90, synonym .95",
        "task=verbal verbal=original",
    ),
    (
        "verbal analogies, 57 people",
        "category .861, function .814, opposite .858, synonym .842",
        "task=verbal verbal=original",
    ),
    ("story analogies, text-davinci-003", "near .750, far .667", "task=stories"),
    ("story analogies, gpt-4", "near .972, far .750", "task=stories"),
    ("story analogies, 54 people", "near .891, far .848", "task=stories"),
]
"""Problems and who solved them, accuracy, parameters."""


def analogies() -> list[LLMClaim]:
    rows: list[LLMClaim] = []
    for quantity, accuracy, parameters in ANALOGIES:
        chosen = "".join(f" --set {parameter}" for parameter in parameters.split())
        mind = "human" if quantity.endswith("people") else "MODEL"
        command = f"mesa-llm run emergent_analogies --steps 1000{chosen} --llm {mind}"
        rows.append(LLMClaim(quantity, accuracy, WEBB, command))
    return rows


# -- the others


def personas() -> list[LLMClaim]:
    notebook = "the authors' notebooks, GPT-4"
    return [
        LLMClaim("exaggeration of 14 personas, forum", values_text(EXAGGERATION), notebook, bench("compost")),
        LLMClaim("exaggeration by topic, forum", "61 topics, up to 1", notebook, bench("compost")),
        LLMClaim(
            "individuation of 14 personas, forum",
            "from .66 (man) and .67 (woman) to .87 (Hispanic and nonbinary person)",
            notebook,
            bench("compost"),
        ),
        LLMClaim("individuation of 14 personas, interview", "1.00 each", notebook, bench("compost")),
        LLMClaim(
            "Republican and Democrat user, small Twitter example",
            "individuation 1.00 and .90, exaggeration .31 and .07",
            notebook,
            bench("compost"),
        ),
    ]


def economies() -> list[LLMClaim]:
    paper = "Li et al. (2024), arXiv 2310.10436"
    command = f"mesa-llm run econ_agent --steps 240 --set n_agents=100 {ORIGINAL} --llm MODEL"
    return [
        LLMClaim("phillips_r, GPT-3.5", "-0.619", paper, bench("econ_agent")),
        LLMClaim("okun_r, GPT-3.5", "-0.918", paper, bench("econ_agent")),
        LLMClaim("phillips_r, Llama-2", "-0.869", "read off the authors' figure", command),
        LLMClaim("unemployment, GPT-3.5", "3.4 to 11.9 percent, mean 7.84", "read off the authors' figure", command),
        LLMClaim("inflation, GPT-3.5, after the first years", "-5 to 5 percent", f"{paper}, by a summary", command),
    ]


def traders() -> list[LLMClaim]:
    paper = "Zhang et al. (2024), arXiv 2407.18957, by a summary"
    command = f"mesa-llm run stock_agent --steps 1000 --set n_agents=50 {ORIGINAL} --llm MODEL"
    return [
        LLMClaim("mood of GPT agents", "optimistic, larger volume, fewer orders", paper, command),
        LLMClaim("mood of Gemini agents", "pessimistic, more frequent and alike", paper, command),
        LLMClaim(
            "decisions of Gemini-Pro, first ten days: buy A, sell A, buy B, sell B, none",
            "377, 347, 273, 137, 366",
            "git history of the authors' repository, f78c082",
            command,
        ),
        LLMClaim(
            "fills and shares of A and B, Gemini-Pro, first ten days",
            "258 and 113; 1,713,159 and 710,951",
            "git history of the authors' repository, f78c082",
            command,
        ),
    ]


def pairs() -> list[LLMClaim]:
    table: Any = dyads()
    columns = ["source", "setting", "judge", "model", "partner"]
    rows: list[LLMClaim] = []
    for (source, setting, judge, model, partner), group in table.groupby(columns, sort=False):
        values = values_text(dict(zip(group["measure"], group["value"], strict=True)))
        quantity = f"{model} with {partner}, {setting}, judged by {judge}"
        rows.append(LLMClaim(quantity, values, source, bench("sotopia")))
    return rows


LLM_CLAIMS = {
    "shachi": shachi(),
    "auction_arena": auctions(),
    "cognitive_biases": biases(),
    "compost": personas(),
    "econ_agent": economies(),
    "emergent_analogies": analogies(),
    "emotionbench": affects(),
    "psychobench": [LLMClaim(f"scores of {name}", text, NOTES, bench("psychobench")) for name, text in TRAITS.items()],
    "sotopia": pairs(),
    "stock_agent": traders(),
}
"""Study → its rows."""

# -- recorded runs

RECORDED = [
    ("AucArena", "nine auctions: bids, draws for ties, plans, beliefs", "auctionarena"),
    ("EconAgent", "42,460 values of the environment, to 1e-9", "econagent"),
    ("StockAgent", "every decision of the run with Gemini-Pro: fills, prices, accounts, leavers", "stockagent"),
    ("SAUCE", "order of speakers, requests, surveys, replies", "sauce"),
    ("SimSwarm, social network", "feeds, actions, events", "simswarm_social"),
    ("SimSwarm, market", "prices, shares, trades", "simswarm_market"),
    ("SimSwarm, economy", "metrics and policies", "simswarm_economy"),
    ("SimSwarm, beliefs", "positions, confidence, trust", "simswarm_beliefs"),
    ("Sotopia", "turns, ends, scores", "sotopia"),
    ("PsychoBench", "keys and scores", "psychobench"),
    ("EmotionBench", "keys and scores", "emotionbench"),
    ("EmergentAnalogies", "problems and verdicts", "emergent_analogies"),
    ("CoMPosT", "axes, individuation, exaggeration", "compost"),
    ("CognitiveBiases", "scores of tests", "cognitive_biases"),
]
"""Program, what is compared, name of the test."""

REPLAYED = [
    (program, what, f"MESA_LLM_GOLDEN=FOLDER python3 dev.py test tests/golden/test_{name}.py")
    for program, what, name in RECORDED
]
REPLAYED += [
    (
        "OASIS",
        "results of actions, every row of the database, rankings",
        "python3 dev.py test tests/golden/test_oasis.py",
    )
]
"""Program, what is compared, command."""
