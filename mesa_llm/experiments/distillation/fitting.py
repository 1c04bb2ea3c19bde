"""Fits choices, options and numbers to recorded decisions."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from mesa_llm.canonical import canonical_json
from mesa_llm.experiments.distillation.recorded import RecordedChoice
from mesa_llm.llm.surrogate.file import Argument, Fitted
from mesa_llm.llm.surrogate.parts import (
    CategoryFact,
    Choice,
    Fact,
    Number,
    NumberFact,
    OptionChoice,
    Prose,
    Tree,
    listed,
    plain_part,
)

FloatArray = NDArray[np.float64]

MAX_CATEGORIES = 30
"""Maximum number of values of a fact that is a category; names and texts have more, and are not used."""

MAX_NOMINAL = 12
"""Maximum number of texts that count as one list where the lists of single observations differ."""

MAX_DEVIATIONS = 60
"""Maximum number of deviations from a line that are kept in a leaf."""

N_FOLDS = 5
"""Number of parts into which the decisions are divided, each held out once."""

N_INNER_FOLDS = 3
"""The same, for the choice of penalty and tree within what was not held out."""

PENALTIES = (100.0, 10.0, 1.0, 0.1)
"""Ridge penalties that are tried on the weights of a logit, the strongest first; intercepts are all but free."""

INTERCEPT_PENALTY = 0.1
"""The same for intercepts, so that what was never chosen keeps a small probability."""

N_LEAVES = (1, 6)
"""Numbers of leaves that are tried, the smallest first; 1: no tree."""

FLOOR = 1e-6
"""Smallest probability in a log loss."""


class Sample:
    """Decisions of one kind, with the columns of their facts."""

    def __init__(self, rows: Sequence[RecordedChoice], without: Collection[str]) -> None:
        self.rows = rows
        self.facts, self.ignored = _fact_models(rows, without)
        self.fitted = Fitted(label=rows[0].label, facts=self.facts, ignored=self.ignored, arguments={})
        self.columns: FloatArray = np.array([self.fitted.columns(row.facts) for row in rows]).reshape(len(rows), -1)

    def part(self, is_in: Callable[[RecordedChoice], bool]) -> tuple[list[RecordedChoice], FloatArray]:
        """Return some of the decisions, and their columns."""
        indices = [index for index, row in enumerate(self.rows) if is_in(row)]
        return [self.rows[index] for index in indices], self.columns[indices]


def _fact_models(rows: Sequence[RecordedChoice], without: Collection[str]) -> tuple[dict[str, Fact], list[str]]:
    """Describe the facts of decisions by their ranges and categories; return also the names of those not used."""
    names = dict.fromkeys(name for row in rows for name in row.facts)
    models: dict[str, Fact] = {}
    ignored: list[str] = []
    for name in names:
        values = [row.facts.get(name) for row in rows]
        numbers = [value for value in values if isinstance(value, float)]
        texts = sorted({value for value in values if isinstance(value, str)})
        n_missing = values.count(None)
        if name in without or (numbers and texts) or len(texts) > MAX_CATEGORIES:
            ignored.append(name)
        elif texts:
            models[name] = CategoryFact(values=[*texts, *([""] if n_missing and "" not in texts else [])])
        else:
            scale = float(np.std(numbers)) or 1.0
            models[name] = NumberFact(
                minimum=min(numbers),
                maximum=max(numbers),
                mean=_rounded(float(np.mean(numbers))),
                scale=_rounded(scale) or 1.0,
                may_be_missing=n_missing > 0,
            )
    return models, ignored


def fitted_to(label: str, sample: Sample) -> Fitted:
    """Fit the choice model of one kind of question."""
    actions = sorted({name for row in sample.rows for name in row.offer})
    action = None
    if actions != [""]:
        rows, columns = sample.part(lambda row: row.action in row.offer)
        action = _fit_choice(actions, [list(row.offer) for row in rows], [row.action for row in rows], columns, rows)
    arguments: dict[str, Argument] = {}
    for name in actions:
        rows, columns = sample.part(lambda row, name=name: row.action == name and name in row.offer)
        known = dict.fromkeys(argument for row in rows for argument in row.offer[name]["properties"])
        for argument in known:
            arguments[f"{name}.{argument}"] = _fit_argument(name, argument, rows, columns)
    return Fitted(
        label=label,
        facts=sample.facts,
        ignored=sample.ignored,
        action=action,
        arguments=arguments,
        n=len(sample.rows),
    )


def _fit_argument(action: str, argument: str, rows: Sequence[RecordedChoice], columns: FloatArray) -> Argument:
    """Fit one argument of an action, or one field of an answer, to the decisions that have it."""
    indices = [index for index, row in enumerate(rows) if row.arguments.get(argument) is not None]
    left_out = _rounded(1 - len(indices) / len(rows))
    rows, columns = [rows[index] for index in indices], columns[indices]
    if not rows:
        return Argument(part=Prose(), left_out=left_out)
    schemas = [plain_part(row.offer[action]["properties"].get(argument, {})) for row in rows]
    values = [row.arguments[argument] for row in rows]
    lists = [listed(schema) for schema in schemas]
    if all(lists):
        options = cast("list[list[Any]]", lists)
        union = list({canonical_json(one): one for several in options for one in several}.values())
        is_one_list = len({canonical_json(several) for several in options}) == 1 and len(union) <= 200
        if is_one_list or (len(union) <= MAX_NOMINAL and all(isinstance(one, str) for one in union)):
            return Argument(part=_fit_choice(union, options, values, columns, rows), left_out=left_out)
        known = [row.options.get(argument, {}) for row in rows]
        return Argument(part=_fit_options(options, values, known), left_out=left_out)
    if all(schema.get("type") in ("integer", "number") for schema in schemas):
        return Argument(part=_fit_number(np.array(values, dtype=np.float64), columns, rows), left_out=left_out)
    return Argument(part=Prose(), left_out=left_out)


def _fit_choice(
    values: Sequence[Any],
    offers: Sequence[Sequence[Any]],
    chosen: Sequence[Any],
    columns: FloatArray,
    rows: Sequence[RecordedChoice],
) -> Choice:
    """Fit a multinomial logit over what each observation offered; cross-validation chooses its penalty and tree."""
    index = {canonical_json(value): place for place, value in enumerate(values)}
    is_offered = np.zeros((len(rows), len(values)), dtype=bool)
    for row, offer in zip(is_offered, offers, strict=True):
        row[[index[canonical_json(value)] for value in offer]] = True
    picks = np.array([index[canonical_json(value)] for value in chosen])
    is_offered[np.arange(len(picks)), picks] = True  # what was decided was possible
    candidates = [(n_leaves, penalty) for n_leaves in N_LEAVES for penalty in PENALTIES]

    def fit(which: NDArray[np.bool_], candidate: tuple[int, float]) -> Choice:
        n_leaves, penalty = candidate
        tree = _class_tree(columns[which], picks[which], n_leaves)
        logit = Choice(values=list(values), intercepts=[0.0] * len(values), weights=[[]] * len(values), tree=tree)
        wide = np.array([logit.columns(row) for row in columns[which].tolist()]).reshape(int(which.sum()), -1)
        design = np.hstack([np.ones((len(wide), 1)), wide])
        weights = _logit(design, is_offered[which], picks[which], penalty)
        rounded = [[_rounded(weight) for weight in row] for row in weights.tolist()]
        fields = {"intercepts": [row[0] for row in rounded], "weights": [row[1:] for row in rounded]}
        return logit.model_copy(update=fields)

    def loss(choice: Choice, place: int) -> float:
        offer = [value for value, is_in in zip(values, is_offered[place], strict=True) if is_in]
        shares = choice.probabilities(offer, columns[place].tolist())
        return -math.log(max(shares[offer.index(values[picks[place]])], FLOOR))

    return _chosen_by_cross_validation(fit, loss, candidates, rows)


def _chosen_by_cross_validation[M, C](
    fit: Callable[[NDArray[np.bool_], C], M],
    loss: Callable[[M, int], float],
    candidates: Sequence[C],
    rows: Sequence[RecordedChoice],
) -> M:
    """Return a model fitted to all decisions in the simplest way that predicts held-out ones well.

    That is the first candidate whose held-out loss is within one standard error of the smallest.

    Source:
        Breiman, Friedman, Olshen and Stone (1984), Classification and Regression Trees, section 3.4.3: the 1 SE rule.
    """
    everything = np.ones(len(rows), dtype=bool)
    _, folds = folds_of(rows, N_INNER_FOLDS)
    if len(set(folds)) < 2:
        return fit(everything, candidates[0])
    fold = np.array(folds)
    losses = np.zeros((len(candidates), len(rows)))
    for candidate, row in zip(candidates, losses, strict=True):
        for one in sorted(set(folds)):
            model = fit(fold != one, candidate)
            for place in np.flatnonzero(fold == one):
                row[place] = loss(model, int(place))
    excess = losses - losses[losses.mean(axis=1).argmin()]
    is_good = excess.mean(axis=1) <= excess.std(axis=1) / math.sqrt(len(rows)) + 1e-9
    return fit(everything, candidates[int(is_good.argmax())])


def _logit(design: FloatArray, is_offered: NDArray[np.bool_], picks: NDArray[np.intp], penalty: float) -> FloatArray:
    """Maximise the penalised likelihood of a logit.

    Args:
        design: Columns, the first of ones, shape `(decisions, columns)`.
        is_offered: Which values were offered, shape `(decisions, values)`.
        picks: Index of the value that was chosen, shape `(decisions,)`.
        penalty: Weight of half the sum of squared weights, but for the intercepts.

    Returns:
        Weights, shape `(values, columns)`.
    """
    n_values, n_columns = is_offered.shape[1], design.shape[1]
    targets = np.zeros(is_offered.shape)
    targets[np.arange(len(picks)), picks] = 1.0
    ridge = np.full(n_columns, penalty)
    ridge[0] = INTERCEPT_PENALTY

    def objective(flat: FloatArray) -> tuple[float, FloatArray]:
        weights = flat.reshape(n_values, n_columns)
        shares, log_shares = _shares(design @ weights.T, is_offered)
        value = -float(log_shares[np.arange(len(picks)), picks].sum()) + float((ridge * weights**2).sum()) / 2
        return value, ((shares - targets).T @ design + ridge * weights).ravel()

    return minimize(objective, np.zeros(n_values * n_columns), jac=True, method="L-BFGS-B").x.reshape(n_values, -1)


def _shares(utilities: FloatArray, is_offered: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
    """Return logit probabilities among what is offered, and their logarithms."""
    masked = np.where(is_offered, utilities, -np.inf)
    masked -= masked.max(axis=1, keepdims=True)
    log_shares = masked - np.log(np.exp(masked).sum(axis=1, keepdims=True))
    return np.exp(log_shares), log_shares


def _fit_options(
    options: Sequence[Sequence[Any]], chosen: Sequence[Any], known: Sequence[Mapping[str, Mapping[str, float]]]
) -> OptionChoice:
    """Fit a conditional logit over the position and the facts of options."""
    found = [record for by_option in known for record in by_option.values()]
    names = sorted(set.intersection(*(set(record) for record in found))) if found and all(known) else []
    facts: dict[str, NumberFact] = {}
    for name in names:
        numbers = [record[name] for record in found]
        mean, scale = _rounded(float(np.mean(numbers))), _rounded(float(np.std(numbers))) or 1.0
        facts[name] = NumberFact(minimum=min(numbers), maximum=max(numbers), mean=mean, scale=scale)
    model = OptionChoice(facts=facts, weights=[0.0] * (1 + 3 * len(facts)))
    rows = [np.array(model.columns(several, facts)) for several, facts in zip(options, known, strict=True)]
    picks = [several.index(value) for several, value in zip(options, chosen, strict=True)]

    def objective(weights: FloatArray) -> tuple[float, FloatArray]:
        value, slope = float((weights**2).sum()) / 2, weights.copy()
        for row, pick in zip(rows, picks, strict=True):
            shares, log_shares = _shares((row @ weights)[None], np.ones((1, len(row)), dtype=bool))
            value -= float(log_shares[0, pick])
            slope += shares[0] @ row - row[pick]
        return value, slope

    best = minimize(objective, np.zeros(len(model.weights)), jac=True, method="L-BFGS-B").x
    return model.model_copy(update={"weights": [_rounded(weight) for weight in best.tolist()]})


def _fit_number(values: FloatArray, columns: FloatArray, rows: Sequence[RecordedChoice]) -> Number:
    """Fit a number by a line in the facts, or none, and the deviations from it in the leaves of a tree."""
    candidates = [(has_line, n_leaves) for n_leaves in N_LEAVES for has_line in (False, True)]

    def fit(which: NDArray[np.bool_], candidate: tuple[bool, int]) -> Number:
        has_line, n_leaves = candidate
        x, y = columns[which], values[which]
        intercept, weights = 0.0, []
        if has_line and x.shape[1]:
            line = Ridge(alpha=1.0).fit(x, y)
            intercept = _rounded(float(line.intercept_))
            weights = [_rounded(weight) for weight in np.asarray(line.coef_).tolist()]
        rest = y - intercept - (x @ np.array(weights) if weights else 0.0)
        tree = _value_tree(x, rest, n_leaves)
        leaves = [tree.leaf(row) for row in x.tolist()]
        deviations = [quantiles(rest[np.array(leaves) == leaf]) for leaf in range(len(tree.leaves))]
        low, high = float(y.min()), float(y.max())
        return Number(intercept=intercept, weights=weights, tree=tree, deviations=deviations, minimum=low, maximum=high)

    def loss(number: Number, place: int) -> float:
        return crps(number.values(columns[place].tolist(), {"type": "number"}), float(values[place]))

    return _chosen_by_cross_validation(fit, loss, candidates, rows)


def quantiles(values: FloatArray) -> list[float]:
    """Return numbers in ascending order, or evenly spaced quantiles of many; 0 for none."""
    if len(values) > MAX_DEVIATIONS:
        levels = (np.arange(MAX_DEVIATIONS) + 0.5) / MAX_DEVIATIONS
        values = np.quantile(values, levels, method="inverted_cdf")
    return [_rounded(value) for value in np.sort(values).tolist()] or [0.0]


def _class_tree(columns: FloatArray, picks: NDArray[np.intp], n_leaves: int) -> Tree:
    """Grow a tree that tells choices apart."""
    if n_leaves == 1 or not columns.shape[1] or len(set(picks.tolist())) < 2:
        return Tree()
    grown = DecisionTreeClassifier(max_leaf_nodes=n_leaves, min_samples_leaf=_min_leaf(len(picks)), random_state=0)
    return _plain_tree(grown.fit(columns, picks).tree_)


def _value_tree(columns: FloatArray, values: FloatArray, n_leaves: int) -> Tree:
    """Grow a tree that tells numbers apart."""
    if n_leaves == 1 or not columns.shape[1]:
        return Tree()
    grown = DecisionTreeRegressor(max_leaf_nodes=n_leaves, min_samples_leaf=_min_leaf(len(values)), random_state=0)
    return _plain_tree(grown.fit(columns, values).tree_)


def _min_leaf(n: int) -> int:
    return max(5, n // 50)


def _plain_tree(grown: Any) -> Tree:
    column = [max(int(one), -1) for one in grown.feature]
    threshold = [
        _rounded(float(one)) if place >= 0 else 0.0 for one, place in zip(grown.threshold, column, strict=True)
    ]
    left, right = [int(one) for one in grown.children_left], [int(one) for one in grown.children_right]
    return Tree(column=column, threshold=threshold, left=left, right=right)


def _rounded(value: float) -> float:
    """Round to six significant digits, which is more than any recording supports."""
    return float(f"{value:.6g}")


def folds_of(rows: Sequence[RecordedChoice], nfolds_of: int = N_FOLDS) -> tuple[Literal["agents", "steps"], list[int]]:
    """Divide decisions into parts, by agents, or by steps where agents are few."""
    has_agents = len({row.group for row in rows}) >= N_FOLDS
    keys = [row.group if has_agents else row.moment for row in rows]
    groups = sorted(set(keys))
    random.Random(1).shuffle(groups)
    part = {group: index % nfolds_of for index, group in enumerate(groups)}
    return "agents" if has_agents else "steps", [part[key] for key in keys]


def run_folds_of(rows: Sequence[RecordedChoice]) -> list[int]:
    """Divide decisions into parts of whole runs, at most `N_FOLDS`."""
    runs = sorted({row.run for row in rows})
    random.Random(1).shuffle(runs)
    part = {run: index % N_FOLDS for index, run in enumerate(runs)}
    return [part[row.run] for row in rows]


def crps(drawn: Sequence[float], value: float) -> float:
    """Return the continuous ranked probability score of equally likely numbers, in their unit.

    Source:
        Gneiting and Raftery (2007), Strictly Proper Scoring Rules, JASA 102(477), equation 21.
    """
    ascending, n = sorted(drawn), len(drawn)
    spread = math.fsum((2 * index - n + 1) * one for index, one in enumerate(ascending)) / n**2
    return math.fsum(abs(one - value) for one in ascending) / n - spread
