"""Measurements of local language models: what each runs, and what it says in a row or a sentence."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from mesa_llm.engine.access import Access
from mesa_llm.experiments.audits import DIMENSIONS, audit, read_claims
from mesa_llm.experiments.audits.claim import claim_from
from mesa_llm.experiments.audits.findings import ClaimFindings
from mesa_llm.experiments.audits.probes import AwarenessJob, awareness_of
from mesa_llm.experiments.benchmarks import Task, find_task
from mesa_llm.experiments.benchmarks.cross import cross
from mesa_llm.experiments.benchmarks.report import result_of
from mesa_llm.experiments.benchmarks.runs import Candidate, PlannedRun, TaskRuns
from mesa_llm.experiments.findings import cell_text
from mesa_llm.experiments.persona import persona_contrast
from mesa_llm.experiments.runs.run import Run
from mesa_llm.experiments.runs.runner import Stop
from mesa_llm.experiments.runs.study import StudySetup, find_study
from mesa_llm.experiments.runs.sweep import sweep
from mesa_llm.model.identity import class_named, name_of
from mesa_llm.model.model import LLMModel
from mesa_llm.model.quality import Rate
from mesa_llm.records import Decision
from mesa_llm.registry import find_model
from mesa_llm.statistics import Estimate, mean_estimate, share_interval, with_interval
from mesa_llm.text import counted, figure_text
from mesa_llm_models.classics.opinion.model import OpinionModel
from mesa_llm_models.classics.persona_form import PUBLISHED, study_persona_form
from mesa_llm_models.oasis.model import POST
from mesa_llm_models.shachi.two_worlds import TwoWorldsModel
from mesa_llm_models.shachi.worlds import PUBLISHED as WORLDS_PUBLISHED
from mesa_llm_models.social.model import SocialModel

CLAIMS = "models/mesa_llm_models/classics/prisoners_dilemma/recordings/audit.toml"
"""File of the audited claim, from the root of the repository."""

IN_WORDS = "cooperation of two kind players less that of two ruthless ones"
"""The audited claim."""

SMALL = "local"
"""Language model of another size under which a claim is audited."""

ASKED_ASIDE: Mapping[str, tuple[str, ...]] = {
    "boltzmann_wealth": ("boltzmann", "inequality", "wealth distribution", "econophysics"),
    "culture": ("axelrod", "dissemination of culture", "cultural diffusion", "homophily", "social influence"),
    "el_farol": ("el farol", "minority game", "inductive", "bounded rationality", "congestion"),
    "epidemic": ("epidemi", "susceptible", "sir model", "sis model"),
    "opinion": ("opinion dynamics", "consensus", "polari", "bounded confidence", "persuasion"),
    "prisoners_dilemma": ("prisoner", "dilemma", "axelrod", "game theory", "tit for tat", "repeated interaction"),
    "schelling": ("schelling", "segregat"),
    "sugarscape": ("sugarscape", "epstein", "axtell", "artificial societ"),
    "wolf_sheep": ("predator", "lotka", "volterra", "ecolog", "ecosystem"),
    "social": ("social network analysis", "polari", "herd", "misinformation", "echo chamber", "information spread"),
}
"""Model whose agents are asked what is studied → words by which they name it, if their own prompts do not hold them."""


@dataclass(frozen=True)
class LocalRow:
    """One figure of a local language model."""

    quantity: str
    """What was measured."""

    ours: str
    """The figure, with its interval."""

    n: int
    """Number of seeds, questions or agents behind it."""

    verdict: str = ""
    """What it shows, by the rules of its measurement."""

    published: str = ""
    """Published figures of other language models, if there are any."""

    error: float | None = None
    """Distance from published scores; None where it is none."""

    chance: float | None = None
    """The same by chance."""


@dataclass(frozen=True)
class Measurement:
    """Rows that one command measures."""

    title: str
    """What is measured."""

    command: str
    """Command that measures it; `MODEL` stands for the language model, `MODELS` for it and the one of another size."""

    rows: Callable[[str, Path, int | None], list[LocalRow]]
    """Measures with a language model, a folder of logs, and a number of seeds (None: its own)."""

    summary: Callable[[Sequence[Mapping[str, Any]]], str]
    """Says in a sentence what the rows show."""

    note: str = ""
    """What a reader has to know."""

    def command_for(self, llm: str) -> str:
        """Return the command that measures a language model."""
        return self.command.replace("MODELS", ",".join(_audited_with(llm))).replace("MODEL", llm)


def _audited_with(llm: str) -> list[str]:
    return list(dict.fromkeys([llm, SMALL]))


def persona(llm: str, logs: Path, seeds: int | None) -> list[LocalRow]:
    """Contrast personas."""
    with closing(Access()) as access:
        found = persona_contrast(llm, folder=logs, access=access)
    return [
        LocalRow(
            f"{row.name}, from {figure_text(row.range[0])} to {figure_text(row.range[1])}",
            with_interval(row.difference),
            0 if row.difference is None else row.difference.n,
            row.verdict,
        )
        for row in found
    ]


def persona_form(llm: str, logs: Path, seeds: int | None) -> list[LocalRow]:
    """Run [1]'s first case."""
    n = seeds or 30
    findings = study_persona_form(StudySetup(range(1, n + 1), logs, llm))
    shares, differences, _ = findings.tables
    published = ", ".join(f"{name} {size:.0f}" for name, size in PUBLISHED.items())
    rows = [
        LocalRow(f"cooperation, persona as {row['form']} (percent)", _interval(row, "cooperation"), n)
        for row in shares.rows
    ]
    for row in differences.rows:
        p = float(row["p"] or 1)
        verdict = "differs" if p < 0.05 else "no difference shown"
        text = f"{verdict} (p = {p:.2g})"
        rows.append(LocalRow(f"{row['pair']} (percentage points)", _interval(row, "difference"), n, text))
    largest = max(abs(float(row["difference"] or 0)) for row in differences.rows)
    rows.append(LocalRow("largest difference (percentage points)", figure_text(largest), n, "", published))
    return rows


def _interval(row: Mapping[str, Any], name: str) -> str:
    low, high = row["low"], row["high"]
    ends = "" if low is None or high is None else f" [{figure_text(low)}, {figure_text(high)}]"
    return figure_text(row[name]) + ends


def awareness(llm: str, logs: Path, seeds: int | None) -> list[LocalRow]:
    """Ask agents aside, before the first step, what is studied."""
    rows: list[LocalRow] = []
    total = Rate(0, 0)
    with closing(Access()) as access:
        access.open(llm)
        for name, words in ASKED_ASIDE.items():
            kind = find_model(name).load()
            parameters = {"guests": 5} if name == "prisoners_dilemma" else {}
            answers = []
            for seed in range(1, (seeds or 1) + 1):
                job = Run(name_of(kind), parameters, llm, "own", {}, seed, 1, logs / name, {})
                job.folder.mkdir(parents=True, exist_ok=True)
                answers += AwarenessJob(job, words, "").run(access, Stop())
            rate = awareness_of(answers) or Rate(0, 0)
            total = total.plus(*rate)
            rows.append(LocalRow(f"agents of {name} who name the experiment", f"{rate.n} of {rate.of}", rate.of))
    low, high = share_interval(*total)
    text = f"{total.n} of {total.of} ({total.share:.0%} [{low:.0%}, {high:.0%}])"
    rows.append(LocalRow("all of them", text, total.of, "", "47.6 % of prompts, frontier models (arXiv 2509.18052)"))
    return rows


def audited(llm: str, logs: Path, seeds: int | None) -> list[LocalRow]:
    """Audit one claim of the prisoner's dilemma."""
    kind = find_model("prisoners_dilemma").load()
    options = {"scoring": "probabilities"}
    claims = read_claims(Path(__file__).parents[1] / CLAIMS, kind)
    found = audit(kind, claims, llm=_audited_with(llm), seeds=seeds or 10, options=options, folder=logs)
    found.write(logs)
    rows = [row for one in found.claims for row in _rows_of_claim(one, IN_WORDS)]
    covered = f"{len(found.audited)} of {len(DIMENSIONS)}"
    n = len(found.seeds)
    return [*rows, LocalRow("coverage", found.coverage, n), LocalRow("dimensions audited", covered, n)]


def _rows_of_claim(one: ClaimFindings, text: str) -> list[LocalRow]:
    n = one.baseline.n
    rows = [LocalRow(text, with_interval(one.baseline), n, one.verdict)]
    rows += [
        LocalRow(f"under “{row.perturbation.name}”", with_interval(row.result.effect), n, row.result.change)
        for row in one.perturbations
    ]
    return rows + [LocalRow(f"beside it: {row.name}", with_interval(row.effect), n, row.shown) for row in one.controls]


# -- tasks of the benchmark


LEVEL_ONE = ("psychobench", "compost", "cognitive_biases", "emotionbench", "emergent_analogies")
"""Shachi's tasks of level I."""


def level_one(llm: str, logs: Path, seeds: int | None) -> list[LocalRow]:
    """Run the tasks of level I in small, on our own items and on those published ones that are at hand."""
    numbers = range(1, (seeds or 1) + 1)
    own = [find_task(name).as_quick() for name in LEVEL_ONE]
    own[0] = own[0].measured_by("Five traits: Extraversion")
    own[1] = own[1].measured_by("individuation: 80-year-old person")
    rows = [_task_row(task, "our items", llm, logs, numbers) for task in own]
    return rows + [_task_row(task, "published items", llm, logs, numbers) for task in _published_tasks()]


def _published_tasks() -> list[Task]:
    folder = Path(os.environ.get("MESA_LLM_DATA", os.devnull))
    files = {name: folder / name / "questionnaires.json" for name in ("psychobench", "emotionbench")}
    if not all(file.is_file() for file in files.values()):
        return []
    short = ["BFI", "DTDD", "GSE", "LMS", "LOT-R"]
    psychobench = {"items": str(files["psychobench"]), "instruments": short, "administrations": 2}
    sheets = {"questionnaires": str(files["emotionbench"]), "instrument": "PANAS"}
    situations = {"situations": str(folder / "emotionbench" / "situations.json")}
    return [
        find_task("psychobench").with_parameters(psychobench),
        find_task("emotionbench").as_quick().with_parameters(sheets | situations),
    ]


def _task_row(task: Task, items: str, llm: str, logs: Path, seeds: Sequence[int]) -> LocalRow:
    candidates = [Candidate(name, name) for name in (llm, "random", "rule")]
    folder = logs / f"{task.name} {items}"
    folder.mkdir(parents=True, exist_ok=True)
    with closing(Access()) as access:
        plans = [PlannedRun(task, one, seed) for one in candidates for seed in seeds]
        runs = TaskRuns(plans, access=access, folder=folder).run()
    found = [result_of(task, [run for run in runs if run.plan.candidate == one]) for one in candidates]
    has_error = all(one.error is not None for one in found)
    kind = f"error, {task.unit}".rstrip(", ") if has_error else task.measure_name
    estimates: list[Estimate | None] = []
    for candidate, one in zip(candidates, found, strict=True):
        own = [run for run in runs if run.plan.candidate == candidate and run.error is None]
        estimates.append(one.error if has_error else mean_estimate([task.measured(run.scores) for run in own]))
    texts = [with_interval(one) for one in estimates]
    errors = [None if one is None or not has_error else one.value for one in estimates[:2]]
    published = ""
    if task.published is not None and has_error:
        published = f"{figure_text(task.published.agent)} ({task.published.setting})"
    beside = f"by chance {texts[1]}, by rule {texts[2]}"
    return LocalRow(f"{task.name}, {items}: {kind}", texts[0], len(seeds), beside, published, *errors)


CROSSED: Mapping[str, dict[str, Any]] = {
    "emergent_analogies": {},
    "stock_agent": {},
    "auction_arena": {"n_lots": 2},
    "sotopia": {"judge": "rule", "n_dyads": 1, "max_turns": 4},
}
"""Task of Table 2 → its parameters, beside those of a quick run."""


def designs(llm: str, logs: Path, seeds: int | None) -> list[LocalRow]:
    """Run Shachi's four designs in their four tasks, in small."""
    tasks = [find_task(name).as_quick().with_parameters(setting) for name, setting in CROSSED.items()]
    found = cross(tasks, llm=llm, seeds=seeds or 1, folder=logs)
    return [
        LocalRow(
            f"design of {cell.design} in {cell.task}, relative to its own",
            with_interval(cell.ratio),
            len(found.seeds),
            f"its own measure {with_interval(cell.figure)}",
            figure_text(cell.published_ratio),
        )
        for cell in found.cells
    ]


# -- studies


class _Columns(NamedTuple):
    """Columns of a study's table of which rows are made."""

    quantity: Callable[[Mapping[str, Any]], str]
    figure: str
    n: str
    verdict: Callable[[Mapping[str, Any]], str] = lambda row: ""
    published: str = ""
    keeps: Callable[[Mapping[str, Any]], bool] = lambda row: True


def _study(
    package: str, name: str, columns: _Columns, *, n_seeds: int, **parameters: Any
) -> Callable[[str, Path, int | None], list[LocalRow]]:
    def rows(llm: str, logs: Path, seeds: int | None) -> list[LocalRow]:
        study = find_study(package, name)
        own = {option.name: parameters[option.name] for option in study.options if option.name in parameters}
        rest = {key: value for key, value in parameters.items() if key not in own}
        setup = StudySetup(range(1, (seeds or n_seeds) + 1), logs, llm, parameters=rest)
        table = study.run(setup, **own).tables[0]
        return [
            LocalRow(
                columns.quantity(row),
                _interval(row, columns.figure),
                int(row[columns.n] or 0),
                columns.verdict(row),
                cell_text(row[columns.published]) if row.get(columns.published) else "",
            )
            for row in table.rows
            if columns.keeps(row)
        ]

    return rows


def _p_text(row: Mapping[str, Any]) -> str:
    p = row["adjusted p"]
    return "" if p is None else f"{'differs' if p < 0.05 else 'no difference shown'} (adjusted p = {p:.2g})"


FIGURES = _Columns(lambda row: str(row["figure"]), "mean", "runs")
"""Of the studies of OASIS."""

SHIFTS = _Columns(
    lambda row: f"shift of {row['bias']} with memories of {row['source']}", "difference", "pairs", _p_text, "published"
)
"""Of the study of carried memories."""

# -- claims of the audit's sources


BANDS = ((0.0, 0.2), (0.2, 0.5), (0.5, 1.0))
"""Distances of two opinions."""


def opinions(llm: str, logs: Path, seeds: int | None) -> list[LocalRow]:
    """Count, by the distance of two opinions, how often agents compromise."""
    met: dict[tuple[float, float], list[bool]] = {band: [] for band in BANDS}
    for seed in range(1, (seeds or 1) + 1):
        with closing(OpinionModel(n_agents=20, llm=llm, rng=seed, log=logs / f"{seed}.sqlite")) as model:
            for _ in range(3):
                before = {citizen.unique_id: citizen.opinion for citizen in model.agents}
                model.step()
                for citizen in model.agents:
                    decision = model.last_decisions.get(citizen.unique_id)
                    if citizen.opposite is None or not isinstance(decision, Decision):
                        continue
                    distance = abs(citizen.opposite - before[citizen.unique_id])
                    band = next(one for one in BANDS if distance <= one[1])
                    met[band].append(decision.actions[0].name == "compromise")
    rows = []
    for (low, high), moves in met.items():
        share = Rate(sum(moves), len(moves))
        bound = "all" if high <= BANDS[0][1] else "none"
        ends = share_interval(*share)
        text = f"{share.share:.0%} [{ends[0]:.0%}, {ends[1]:.0%}]"
        rows.append(
            LocalRow(f"compromises at a distance of {low} to {high}", text, share.of, f"bounded confidence: {bound}")
        )
    return rows


def worlds(llm: str, logs: Path, seeds: int | None) -> list[LocalRow]:
    """Let four traders live on an exchange for a day, with and without a social network that they remember there."""
    fixed = {"n_agents": 4, "days": 1}
    numbers = range(1, (seeds or 1) + 1)
    vary = {"coupling": ["alone", "shared"], "post": [POST]}
    done = sweep(
        TwoWorldsModel, vary, folder=logs / "worlds", steps=None, seeds=numbers, llm=llm, fixed=fixed, workers=1
    )
    done.require_whole()
    runs = {(run["coupling"], run["seed"]): run for run in done.table.to_dict("records")}
    rows = []
    for (indicator, stock), percent in WORLDS_PUBLISHED.items():
        name = f"{indicator}_{stock}"
        alone = [float(runs["alone", seed][name]) for seed in numbers]
        gaps = [float(runs["shared", seed][name]) - own for seed, own in zip(numbers, alone, strict=True)]
        rows.append(
            LocalRow(
                f"{indicator} of {stock} with a network less without, in orders",
                with_interval(mean_estimate(gaps)),
                len(gaps),
                f"without: {figure_text(fmean(alone))}",
                f"{percent:+.1f} %",
            )
        )
    return rows


def echo_chamber(llm: str, logs: Path, seeds: int | None) -> list[LocalRow]:
    """Run a social network with beliefs, with and without homophily and hubs of extreme positions."""
    fixed = {"n_agents": 10, "follows": 2, "beliefs": True, "may_pass": False}
    vary = {"homophily": [0.5, 0.9], "hubs": ["random", "extreme"]}
    numbers = range(1, (seeds or 2) + 1)
    table = sweep(SocialModel, vary, folder=logs, steps=3, seeds=numbers, llm=llm, fixed=fixed, workers=1).table
    spread: dict[tuple[float, str], list[float]] = {}
    for run in table.to_dict("records"):
        spread.setdefault((run["homophily"], run["hubs"]), []).append(run["position_spread"])
    rows = [
        LocalRow(
            f"spread of positions, homophily {homophily}, hubs {hubs}",
            with_interval(mean_estimate(values)),
            len(values),
        )
        for (homophily, hubs), values in spread.items()
    ]
    for name, first, second in (
        ("homophily 0.9 − 0.5", (0.9, "random"), (0.5, "random")),
        ("hubs extreme − random", (0.5, "extreme"), (0.5, "random")),
    ):
        gaps = [one - other for one, other in zip(spread[first], spread[second], strict=True)]
        rows.append(LocalRow(f"spread of positions, {name}", with_interval(mean_estimate(gaps)), len(gaps)))
    return rows


def own_model(llm: str, logs: Path, seeds: int | None) -> list[LocalRow]:
    """Audit the model of its own that `docs/auditing.md` shows."""
    page = Path(__file__).parents[1] / "docs" / "auditing.md"
    source = re.search(r"write_text\(r'''\n(.*?)'''\)", page.read_text(encoding="utf-8"), re.S)
    if source is None:
        raise ValueError(f"{page} has no pasture.py")
    (logs / "pasture.py").write_text(source[1], encoding="utf-8")
    sys.path.insert(0, str(logs))
    kind = class_named("pasture:PastureModel", LLMModel)
    claims = [claim_from("herd", {"measure": "cows_each", "smallest_effect": 0.25}, kind)]
    found = audit(
        kind,
        claims,
        llm=llm,
        seeds=seeds or 8,
        parameters={"years": 1},
        dimensions=("agent specification", "sequencing"),
        folder=logs,
    )
    found.write(logs)
    return [row for one in found.claims for row in _rows_of_claim(one, "cows a herder after a year")]


def _n_with(rows: Sequence[Mapping[str, Any]], verdict: str) -> int:
    return sum(row["verdict"] == verdict for row in rows)


def _n_that_differ(rows: Sequence[Mapping[str, Any]]) -> int:
    return sum(row["verdict"].startswith("differs") for row in rows)


def _figure(rows: Sequence[Mapping[str, Any]], quantity: str) -> str:
    return next(row["ours"] for row in rows if row["quantity"] == quantity)


def _runs_behind(row: Mapping[str, Any], unit: str = "seed") -> str:
    return f"({counted(row['n'], unit)})"


def _own_model_text(rows: Sequence[Mapping[str, Any]]) -> str:
    beside = {row["quantity"].removeprefix("beside it: "): row["ours"] for row in rows}
    return (
        f"In a user's own model of 64 lines, herders have {rows[0]['ours']} cows after a year {_runs_behind(rows[0])}; "
        f"without personas {beside['no persona']}, by chance {beside['random in place of the language model']}. "
        f"Audited: {rows[0]['verdict']}."
    )


def _opinions_text(rows: Sequence[Mapping[str, Any]]) -> str:
    near, _, far = (row["ours"] for row in rows)
    return (
        f"Two people who meet compromise in {near} of cases where they think alike, and in {far} where they are far "
        "apart; under bounded confidence they always would, and never."
    )


def _level_one_text(rows: Sequence[Mapping[str, Any]]) -> str:
    errors = [row for row in rows if row.get("error") is not None]
    n = sum(row["error"] < row["chance"] for row in errors)
    texts = (
        f"{row['quantity'].partition(':')[0]} {figure_text(row['error'])} (chance {figure_text(row['chance'])})"
        for row in errors
    )
    return (
        f"In tasks of level I it is nearer to published scores than chance in {n} of {len(errors)}: {', '.join(texts)}."
    )


MEASUREMENTS: Mapping[str, Measurement] = {
    "persona": Measurement(
        "Does it react to who it is?",
        "python benchmarks/persona_contrast.py --llm MODEL",
        persona,
        lambda rows: f"It reacts to {_n_with(rows, 'reacts')} of {len(rows)} contrasts of personas as it should.",
        "Expected answer under a persona that should score high, minus that under one that should score low, from the "
        "probabilities of all answers.",
    ),
    "persona_form": Measurement(
        "Does the form of a persona alone change its cooperation?",
        "mesa-llm study classics persona_form --llm MODEL",
        persona_form,
        lambda rows: (
            "The form of a persona alone moves its cooperation in a prisoner's dilemma by "
            f"{rows[-1]['ours']} percentage points {_runs_behind(rows[-1])}."
        ),
        "Two agents, ten rounds; the same persona as a plain line, a description and a table. The published personas "
        "are others, so only sizes are beside ours.",
    ),
    "awareness": Measurement(
        "Does it name the experiment that it is in?",
        "python benchmarks/evidence_local.py --llm MODEL --logs DIR awareness",
        awareness,
        lambda rows: f"Asked aside, {rows[-1]['ours']} of its agents name the experiment that they are in.",
        "Up to five agents a model, asked aside before the first step; they name it by one of the words listed in "
        "`benchmarks/evidence_local.py`, unless their own prompts hold it.",
    ),
    "audit": Measurement(
        "Is a claim about its cooperation stable?",
        f"mesa-llm audit prisoners_dilemma --claims {CLAIMS} --scoring probabilities --llm MODELS",
        audited,
        lambda rows: (
            f"Audited in {rows[-1]['ours']} dimensions: a kind player cooperates with a "
            f"probability {rows[0]['ours']} above that of a ruthless one {_runs_behind(rows[0])}. The claim "
            f"{rows[0]['verdict']}."
        ),
        "What the verdicts mean: [Audit a claim](auditing.md).",
    ),
    "own_model": Measurement(
        "Is a result of a user's own model stable?",
        "mesa-llm audit pasture:PastureModel --measure cows_each --smallest-effect 0.25 --set years=1 "
        "--dimensions 'agent specification,sequencing' --seeds 8 --llm MODEL",
        own_model,
        _own_model_text,
        "The model is in [Audit a claim](auditing.md#a-model-of-your-own).",
    ),
    "opinions": Measurement(
        "Does it change opinions as a known reference does?",
        "python benchmarks/evidence_local.py --llm MODEL --logs DIR opinions",
        opinions,
        _opinions_text,
        "Twenty people meet in pairs for three steps (Deffuant); bounded confidence compromises below a distance of "
        "0.2 and never above it (arXiv 2412.05093 compares with such references).",
    ),
    "echo_chamber": Measurement(
        "Do homophily and hubs move polarisation?",
        "python benchmarks/evidence_local.py --llm MODEL --logs DIR echo_chamber",
        echo_chamber,
        lambda rows: (
            f"In a small social network, homophily moves the spread of positions by {rows[-2]['ours']}, hubs that are "
            f"extreme by {rows[-1]['ours']} {_runs_behind(rows[-1])}."
        ),
        "Ten users, three steps; the standard deviation of positions from -1 to 1 (case 2 of arXiv 2605.18890, where "
        "both move it).",
    ),
    "herd": Measurement(
        "Does it follow votes that it sees?",
        "mesa-llm study oasis herd --set n_agents=8 --seeds 2 --llm MODEL",
        _study("oasis", "herd", FIGURES, n_seeds=2, n_agents=8),
        lambda rows: (
            f"A first vote up that others see brings a comment {_figure(rows, 'herding: effect, up')} further points, "
            f"one down {_figure(rows, 'herding: effect, down')} {_runs_behind(rows[0], 'run')}."
        ),
    ),
    "polarisation": Measurement(
        "Do groups become more extreme by talking?",
        "mesa-llm study oasis polarisation --set n_agents=5 --seeds 1 --llm MODEL",
        _study("oasis", "polarisation", FIGURES, n_seeds=1, n_agents=5),
        lambda rows: (
            f"After talking, a share of {_figure(rows, 'cautious: more extreme')} of cautious users is judged more "
            f"extreme, and {_figure(rows, 'bold: more extreme')} of bold ones, by its own judgement "
            f"{_runs_behind(rows[0], 'run')}."
        ),
        "The judge is the same model, and unchecked by people.",
    ),
    "memory": Measurement(
        "Does a memory of another life bend its decisions?",
        "mesa-llm study shachi memory --set people=2 --set months=2 --set n_tests=1 --set "
        '\'biases=["EndowmentEffect","LossAversion"]\' --seeds 1 --llm MODEL',
        _study(
            "shachi",
            "memory",
            SHIFTS,
            n_seeds=1,
            people=2,
            months=2,
            n_tests=1,
            biases=["EndowmentEffect", "LossAversion"],
        ),
        lambda rows: (
            f"A memory of another life shifts {_n_that_differ(rows)} of {len(rows)} biases, as far as {rows[0]['n']} "
            "pairs each can show."
        ),
        "Shachi's Figure 5 in small: two of its thirty biases.",
    ),
    "worlds": Measurement(
        "Do traders trade differently who also live on a social network?",
        "python benchmarks/evidence_local.py --llm MODEL --logs DIR worlds",
        worlds,
        lambda rows: (
            f"Four traders who also live on a social network match {rows[0]['ours']} more orders of stock A, and "
            f"{rows[1]['ours']} of stock B {_runs_behind(rows[0])}."
        ),
        "Shachi's Table 3 in small: four traders, one day. Published are changes in percent, ours numbers of orders. "
        "So few seeds show sizes, and no difference.",
    ),
    "level_one": Measurement(
        "How does it do in the benchmark's tasks of level I?",
        "MESA_LLM_DATA=FOLDER python benchmarks/evidence_local.py --llm MODEL --logs DIR level_one",
        level_one,
        _level_one_text,
        "Shachi's Table 1 in small. Errors only on published items; elsewhere each task's own measure.",
    ),
    "designs": Measurement(
        "Do designs made for one task do as well in another?",
        "mesa-llm bench --cross --quick --set auction_arena.n_lots=2 --set sotopia.judge=rule --set sotopia.n_dyads=1 "
        "--set sotopia.max_turns=4 --repeats 1 --llm MODEL",
        designs,
        lambda rows: f"Designs of other tasks, relative to a task's own: {len(rows)} pairs, in the table.",
        "Shachi's Table 2 in small; one run each, so that differences show nothing yet.",
    ),
}
"""Name → measurement."""
