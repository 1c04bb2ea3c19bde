"""A fitted choice model, as its file holds it, and the decisions that it makes."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from mesa_llm.canonical import canonical_json
from mesa_llm.errors import ConfigError, OutsideSurrogate
from mesa_llm.llm.probabilities import choice_text
from mesa_llm.llm.schema.flat import Schema
from mesa_llm.llm.surrogate.facts import MAX_FACTS, facts_of, label_of, option_facts
from mesa_llm.llm.surrogate.names import PREFIX
from mesa_llm.llm.surrogate.parts import (
    DIGITS,
    CategoryFact,
    Choice,
    Fact,
    FilePart,
    Number,
    OptionChoice,
    Part,
    Prose,
    actions_of,
    draw_index,
    listed,
    offered,
    plain_part,
    require_in_range,
)
from mesa_llm.records import ChoiceSituation, Reply, Request, ToolCall

MAX_BYTES = 8_000_000
"""Maximum size of a file."""


class Argument(FilePart):
    """An argument of an action, or a field of an answer."""

    part: Part
    left_out: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share of decisions without it."""


class Fitted(FilePart):
    """The choice model of one kind of question."""

    label: str
    """Label of the observations, with `#` for numbers; empty: they have none."""

    facts: Annotated[dict[str, Fact], Field(max_length=MAX_FACTS)]
    ignored: list[str]
    """Facts that were not used, because they were left out by hand, or texts of too many kinds."""

    action: Choice | None = None
    """Choice of the action; None: the question wants an answer."""

    arguments: Annotated[dict[str, Argument], Field(max_length=500)]
    """`action.argument`, or `.field` of an answer → its model."""

    n: Annotated[int, Field(ge=0)] = 0
    """Number of decisions it was fitted to."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        n_columns = self.n_columns
        parts = [argument.part for argument in self.arguments.values()]
        for part in [self.action, *parts]:
            match part:
                case Choice():
                    n_all = n_columns + len(part.tree.leaves)
                    is_whole = len(part.intercepts) == len(part.weights) == len(part.values)
                    is_whole &= all(len(row) == n_all for row in part.weights)
                case OptionChoice():
                    is_whole = len(part.weights) == 1 + 3 * len(part.facts)
                case Number():
                    is_whole = len(part.weights) in (0, n_columns) and len(part.deviations) == len(part.tree.leaves)
                case _:
                    is_whole = True
            if not is_whole or (isinstance(part, Choice | Number) and max(part.tree.column) >= n_columns):
                raise ValueError("the weights do not fit the facts")
        return self

    @property
    def n_columns(self) -> int:
        """Number of columns of the facts."""
        return sum(
            len(fact.values) if isinstance(fact, CategoryFact) else 1 + fact.may_be_missing
            for fact in self.facts.values()
        )

    def columns(self, facts: Mapping[str, float | str]) -> list[float]:
        """Return the columns of some facts: numbers standardised, an indicator for each category.

        Raises:
            OutsideSurrogate: If a fact is missing, of another kind, out of its range, or of a new category.
        """
        columns: list[float] = []
        for name, fact in self.facts.items():
            value = facts.get(name)
            if isinstance(fact, CategoryFact):
                text = "" if value is None else value
                if text not in fact.values:
                    recorded = ", ".join(map(repr, fact.values[:5]))
                    raise OutsideSurrogate(f"{name} is {value!r:.60}; in the recordings it was {recorded}")
                columns += [float(text == one) for one in fact.values]
            else:
                number = require_in_range(name, value, fact)
                columns.append(0.0 if number is None else round((number - fact.mean) / fact.scale, DIGITS))
                if fact.may_be_missing:
                    columns.append(float(number is None))
        return columns


class RecordingSource(FilePart):
    """A run log whose decisions were fitted."""

    name: str
    """Name of its file."""

    sha256: str
    """Digest of its content."""

    model: str
    """Class of its Mesa model."""


class PartScore(FilePart):
    """Mean losses of held-out decisions: log losses in nats, or CRPS in units of the number; lower is better."""

    label: str
    """Label of the observations."""

    part: str
    """`action`, `action.argument`, or `.field` of an answer."""

    measure: Literal["log loss", "CRPS"]
    n: int
    """Number of held-out decisions that were scored."""

    n_runs: int = 1
    """Number of runs that these are of."""

    surrogate: float
    low: float | None = None
    """Lower end of the 95 % interval of the surrogate's loss, over runs that were held out; None below four, or where
    decisions were held out within runs.
    """

    high: float | None = None
    """Upper end."""

    chance: float
    """Of all values that were offered being equally likely."""

    frequencies: float
    """Of the recorded frequencies, whatever the facts."""

    rule: float | None = None
    """Of the rule twin: its decision with its share of agreement in the other decisions, and the rest on all others."""

    accuracy: float | None = None
    """Share of decisions that were the most probable one; None for numbers."""

    rule_accuracy: float | None = None
    """Share of decisions that were the rule twin's."""

    confidence: float | None = None
    """Mean probability of the most probable decision: close to the accuracy if the surrogate is calibrated."""


class HeldOut(FilePart):
    """How decisions were held out, and what came of it."""

    by: Literal["runs", "agents", "steps"]
    """What was held out as a whole. Agents and steps are of the runs that were fitted, too: agents of one run share its
    world, so that their losses are smaller than those in a new run.
    """

    n_folds: int
    """Number of parts, each held out once."""

    n: int
    """Number of decisions."""

    n_runs: int = 1
    """Number of runs that they are of."""

    n_outside: int
    """Number of held-out decisions outside of what was fitted to the others; these are not scored."""

    scores: list[PartScore]

    @property
    def is_same_run(self) -> bool:
        """Whether losses are of runs that were also fitted, and say nothing of new ones."""
        return self.by != "runs"

    @property
    def description(self) -> str:
        """What was held out."""
        return self.by if self.by == "runs" else f"{self.by} of the same run{'' if self.n_runs == 1 else 's'}"


class Surrogate(FilePart):
    """A fitted choice model, as its file holds it."""

    format: Literal["mesa-llm surrogate 1"] = "mesa-llm surrogate 1"
    of: list[str]
    """Names of the language models whose decisions were fitted."""

    recordings: list[RecordingSource]
    """The runs."""

    fitted: Annotated[list[Fitted], Field(min_length=1, max_length=500)]
    """One for each kind of question."""

    n_failed: Annotated[int, Field(ge=0)] = 0
    """Number of recorded decisions that failed, and were not fitted."""

    n_several: Annotated[int, Field(ge=0)] = 0
    """Number of decisions of several actions, of which the first was fitted."""

    too_few: dict[str, int] = Field(default_factory=dict)
    """Kind of question → number of its decisions, where these were too few to be fitted."""

    held_out: HeldOut | None = None

    @classmethod
    def read(cls, file: str | Path) -> Surrogate:
        """Read a file.

        Raises:
            ConfigError: If it is missing, too large, or holds anything but a surrogate.
        """
        return read_surrogate(str(file))[0]

    def write(self, file: str | Path) -> None:
        """Write the file.

        Raises:
            ConfigError: If it cannot be written.
        """
        try:
            Path(file).write_text(self.model_dump_json(indent=1) + "\n", encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"{file}: cannot be written: {error.strerror}") from error

    def fitted_to(self, situation: ChoiceSituation) -> Fitted:
        """Return the choice model of a kind of question.

        Raises:
            OutsideSurrogate: If the recordings held no such question.
        """
        label = label_of(situation)
        found = next((one for one in self.fitted if one.label == label), None)
        if found is None:
            raise OutsideSurrogate(f"no question labelled {situation.label!r} is in the recordings")
        return found

    def decided(self, request: Request) -> Reply:
        """Draw a decision, by the request's own seed.

        Raises:
            OutsideSurrogate: If the request is outside of what was fitted.
        """
        situation = request.situation
        if situation is None:
            raise OutsideSurrogate("it decides for agents alone, and was asked something else")
        fitted = self.fitted_to(situation)
        columns = fitted.columns(facts_of(situation))
        offer, rng = actions_of(offered(request)), random.Random(request.salt.seed)
        probabilities: dict[str, float] = {}
        name = ""
        if request.schema is None:
            if fitted.action is None:
                raise OutsideSurrogate("the recordings hold answers to this question, and it now wants an action")
            if not offer:
                raise OutsideSurrogate("no action is possible")
            shares = fitted.action.probabilities(list(offer), columns)
            name = list(offer)[draw_index(shares, rng)]
            probabilities = dict(zip(offer, shares, strict=True))
        elif fitted.action is not None:
            raise OutsideSurrogate("the recordings hold actions, and it now wants an answer")
        arguments = self._arguments(fitted, name, offer[name], columns, situation, rng, probabilities)
        shares = {choice_text(choice): probabilities.get(choice_text(choice), 0.0) for choice in request.choices}
        if name:
            return Reply(tool_calls=(ToolCall(name, arguments),), dollars=0.0, probabilities=shares)
        return Reply(canonical_json(arguments), dollars=0.0, probabilities=shares)

    @staticmethod
    def _arguments(
        fitted: Fitted,
        action: str,
        schema: Schema,
        columns: Sequence[float],
        situation: ChoiceSituation,
        rng: random.Random,
        probabilities: dict[str, float],
    ) -> dict[str, Any]:
        """Draw the arguments of an action, or the fields of an answer, whose probabilities are added to those known."""
        values: dict[str, Any] = {}
        for name, inner in schema["properties"].items():
            argument = fitted.arguments.get(f"{action}.{name}")
            if argument is None:
                if name not in schema["required"]:
                    continue
                raise OutsideSurrogate(f"{action or 'an answer'} with {name} was never chosen in the recordings")
            if rng.random() < argument.left_out:
                if name in schema["required"]:
                    values[name] = None
                continue
            inner = plain_part(inner)
            match argument.part:
                case Choice() | OptionChoice() as part if (options := listed(inner)) is not None:
                    known = option_facts(situation.facts, options) if isinstance(part, OptionChoice) else {}
                    shares = part.probabilities(options, columns, known)
                    values[name] = options[draw_index(shares, rng)]
                    if not action:
                        probabilities |= zip(map(choice_text, options), shares, strict=True)
                case Number() as part if inner.get("type") in ("integer", "number"):
                    drawn = part.values(columns, inner)
                    value = drawn[int(rng.random() * len(drawn))]
                    values[name] = round(value) if inner["type"] == "integer" else value
                case Prose():
                    raise OutsideSurrogate(f"{name} of {action or 'an answer'} is a text or list, and it writes none")
                case _:
                    raise OutsideSurrogate(f"{name} of {action or 'an answer'} is no longer what it was when recorded")
        return values


def read_bytes(file: str | Path) -> bytes:
    """Read the file of a surrogate.

    Raises:
        ConfigError: If it is missing or too large.
    """
    try:
        with Path(file).open("rb") as opened:
            content = opened.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{PREFIX}{file} names no file that can be read ({getattr(error, 'strerror', None) or error}); "
            "mesa-llm distill RUN.sqlite --out FILE writes one"
        ) from None
    if len(content) > MAX_BYTES:
        raise ConfigError(f"{str(file)!r} has more than {MAX_BYTES:,} bytes, which no surrogate has")
    return content


def read_surrogate(file: str) -> tuple[Surrogate, str]:
    """Return the surrogate in a file, and the SHA-256 of its content; see `Surrogate.read`."""
    return _parsed(file, read_bytes(file))


@lru_cache(maxsize=8)
def _parsed(file: str, content: bytes) -> tuple[Surrogate, str]:
    """Return a surrogate and the digest of its file."""
    try:
        surrogate = Surrogate.model_validate(json.loads(content), strict=False)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(map(str, fault["loc"])) or "it"
        raise ConfigError(f"{file!r} is no surrogate that mesa-llm distill wrote: {where}: {fault['msg']}") from None
    except (ValueError, RecursionError):
        raise ConfigError(f"{file!r} is no surrogate that mesa-llm distill wrote: it is not JSON") from None
    return surrogate, hashlib.sha256(content).hexdigest()
