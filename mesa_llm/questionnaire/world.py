"""The questionnaire: hands out sheets, receives answers, and counts invalid ones."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from mesa_llm.errors import ToolError
from mesa_llm.questionnaire import text as wording
from mesa_llm.questionnaire.instruments import Instrument
from mesa_llm.questionnaire.items import DRAW, PAGE, Answer, Sheet, read_choice
from mesa_llm.questionnaire.state import AnswerKey, AnswerLine, ItemCount, Lack
from mesa_llm.records import ActionResult, Event, Observation

MAX_TEXT = 20_000
"""Maximum number of stored characters of a free text."""


class Questionnaire:
    """Presents items to agents and records their answers; missing answers are never filled in.

    An activation hands out a sheet with `ask`, whose observation makes a turn. The answer is delivered to `receive`; an
    agent whose decision failed reports it with `fail`.

    Attributes:
        administration: Number of the current administration, from 1; one per step.
        answers: Agent, administration and sheet → label of each item → answer.
        counts: Label of each item → its counts.
        probabilities: Agent, administration and sheet of one item → answer, as text → its probability; only where the
            language model's own probabilities are known.
        draws: Agent, administration and sheet → label of each item → the answers to it in order, where the sheet is
            handed out several times; see `Sheet.drawn`.
    """

    wording: ClassVar[Any] = wording
    """Module with the texts agents read. A subclass may set its own."""

    name = "questionnaire"
    unit = "administration"

    def __init__(self, instructions: str = "") -> None:
        """Create a questionnaire without answers.

        Args:
            instructions: Text for agents without a sheet.
        """
        self.instructions = instructions
        self.administration = 1
        self.answers: dict[AnswerKey, dict[str, Answer]] = {}
        self.counts: dict[str, ItemCount] = {}
        self.probabilities: dict[AnswerKey, dict[str, float]] = {}
        self.draws: dict[AnswerKey, dict[str, list[Answer]]] = {}
        self._open: dict[tuple[int, str], Sheet] = {}
        self._places: dict[tuple[int, int], list[AnswerKey]] = {}
        self._lines: dict[AnswerKey, AnswerLine] = {}

    def observe(self, agent_id: int) -> Observation:
        """Return the observation without a sheet: the instructions, and no tools."""
        return Observation(instructions=self.instructions, tools=())

    def ask(self, agent_id: int, sheet: Sheet) -> Observation:
        """Hand a sheet to an agent. Its items count as asked.

        Args:
            agent_id: Mesa `unique_id` of the respondent.
            sheet: The sheet.

        Returns:
            The observation: the sheet as text and as `facts`, with the type of its answer.

        Raises:
            ValueError: If the agent has a sheet with this label, or had one in this administration.
        """
        if (agent_id, sheet.label) in self._open or AnswerKey(
            agent_id, self.administration, sheet.label
        ) in self.answers:
            raise ValueError(f"agent {agent_id} is asked {sheet.label!r} twice; use unique labels in a step")
        self._open[agent_id, sheet.label] = sheet
        for item in sheet.items:
            if (count := self.counts.get(item.label)) is None:
                count = self.counts[item.label] = ItemCount()
            count.asked += 1
        return Observation(
            self.wording.describe_sheet(sheet),
            sheet.instructions or self.instructions,
            answer=sheet.answer,
            tools=(),
            facts=sheet,
            label=sheet.label,
            world=self.name,
            persona_place="first",
        )

    def receive(self, agent_id: int, answer: Any, label: str) -> ActionResult:
        """Receive the answer to a sheet. Answers outside an item's choices are counted but not stored.

        Raises:
            ToolError: If no part of it is valid. The message gives the reason for each item.
        """
        sheet = self._open.pop((agent_id, label), None)
        if sheet is None:
            raise ToolError(self.wording.reason_text("not_asked", label=label))
        valid: dict[str, Answer] = {}
        faults: list[str] = []
        base, _, draw = label.partition(DRAW)
        for item, raw in zip(sheet.items, self._by_item(sheet, answer), strict=True):
            count = self.counts[item.label]
            if raw is None:
                faults.append(self.wording.missing_text(item.label))
                continue
            value = read_choice(item, raw)
            if value is None:
                count.unparsable += 1
            elif item.choices and value not in item.choices:
                count.out_of_range += 1
            else:
                count.answered += 1
                valid[item.label] = value if isinstance(value, int) else value[:MAX_TEXT]
                if draw:
                    drawn = self.draws.setdefault(AnswerKey(agent_id, self.administration, base), {})
                    drawn.setdefault(item.label, []).append(valid[item.label])
                if item.series:
                    series = (item.series if len(sheet.items) == 1 else base.partition(PAGE)[0]) + draw
                    line = self._lines.setdefault(AnswerKey(agent_id, self.administration, series), AnswerLine())
                    line.add(value, is_reversed=item.is_reversed)
                continue
            faults.append(self.wording.off_scale_text(item.label, str(raw)))
        if valid:
            place = AnswerKey(agent_id, self.administration, label)
            self.answers[place] = valid
            self._places.setdefault(place[:2], []).append(place)
        if faults and not valid:
            raise ToolError("; ".join(faults) + ".")
        return ActionResult("; ".join(faults), answers=valid, n_faults=len(faults))

    def fail(self, agent_id: int, label: str, *, is_unparsable: bool, is_off_list: bool = False) -> None:
        """Record a failed decision on a sheet.

        Args:
            agent_id: Mesa `unique_id` of the respondent.
            label: Label of the sheet.
            is_unparsable: Whether there was a reply without a readable answer, rather than no reply.
            is_off_list: Whether it contained an answer outside the choices.
        """
        sheet = self._open.pop((agent_id, label), None)
        if sheet is None or not is_unparsable:
            return
        for item in sheet.items:
            count = self.counts[item.label]
            if is_off_list:
                count.out_of_range += 1
            else:
                count.unparsable += 1

    def weigh(self, agent_id: int, label: str, probabilities: Mapping[str, float]) -> None:
        """Record the probabilities of all answers to a sheet of one item, before the answer is received.

        Scores then count the expected answer in place of the one that was sampled.

        Args:
            agent_id: Mesa `unique_id` of the respondent.
            label: Label of the sheet.
            probabilities: Answer, as text → its probability; empty: not known, and nothing is recorded.
        """
        sheet = self._open.get((agent_id, label))
        if sheet is not None and len(sheet.items) == 1 and probabilities:
            self.probabilities[AnswerKey(agent_id, self.administration, label)] = dict(probabilities)

    def end_step(self) -> list[Event]:
        """End the administration. Items without an answer by now are missing."""
        self._open.clear()
        self.administration += 1
        return []

    @staticmethod
    def _by_item(sheet: Sheet, answer: Any) -> Iterable[Any]:
        """Return the answer to each item, or None without one."""
        if len(sheet.items) == 1:
            return [answer]
        return map((answer if isinstance(answer, Mapping) else {}).get, sheet.numbers)

    # -- results

    def given(self, agent_id: int, administration: int) -> dict[str, Answer]:
        """Return an agent's answers in one administration, over all its sheets, by item label."""
        places = self._places.get((agent_id, administration), [])
        return {label: answer for place in places for label, answer in self.answers[place].items()}

    def given_on(self, agent_id: int, sheet: str) -> dict[str, Answer]:
        """Return an agent's answers to a sheet of the current administration, by item label."""
        return dict(self.answers.get(AnswerKey(agent_id, self.administration, sheet), {}))

    def answers_to(self, instrument: Instrument, agent_id: int, administration: int) -> dict[int, float]:
        """Return an agent's answers to an instrument, by item number, without missing ones.

        Where the probabilities of all answers are known, or an item is drawn several times, the answer is their mean.
        """
        places = self._places.get((agent_id, administration), [])
        by_label = {label: (place, answer) for place in places for label, answer in self.answers[place].items()}
        labels = {number: instrument.item(number).label for number in instrument.items}
        found = {number: (label, *by_label[label]) for number, label in labels.items() if label in by_label}
        return {number: self.expected(place, int(answer), label) for number, (label, place, answer) in found.items()}

    def expected(self, key: AnswerKey, answer: int, label: str = "") -> float:
        """Return the mean of all answers to an item, by their probabilities or over its draws.

        Args:
            key: Key of the sheet with the answer.
            answer: The answer that was given, which is returned where neither is known.
            label: Label of the item, on a sheet that is handed out several times.
        """
        shares = self.distribution(key, label)
        return math.fsum(float(choice) * share for choice, share in shares.items()) if shares else answer

    def distribution(self, key: AnswerKey, label: str) -> dict[str, float]:
        """Return the share of each answer to an item, as text: its probability, or how often it was drawn.

        Args:
            key: Key of the sheet, or of any of its draws.
            label: Label of the item.

        Returns:
            The shares; empty where there is one reply alone.
        """
        if probabilities := self.probabilities.get(key):
            return dict(probabilities)
        counts = Counter(map(str, self.draws.get(_of_sheet(key), {}).get(label, ())))
        return {choice: count / counts.total() for choice, count in sorted(counts.items())}

    def distributions(self) -> Iterator[tuple[AnswerKey, str, Answer, dict[str, float]]]:
        """Yield each answer with the key of its sheet, the label of its item, and the share of each possible answer.

        All draws of an item are one answer, the first of them; a single reply has no shares.
        """
        seen: set[tuple[AnswerKey, str]] = set()
        for place, answers in self.answers.items():
            sheet = _of_sheet(place)
            for label, answer in answers.items():
                if (sheet, label) not in seen:
                    seen.add((sheet, label))
                    yield sheet, label, answer, self.distribution(place, label)

    @property
    def certainty(self) -> float | None:
        """Mean share of the most frequent answer to an item: 1 if all were certain; None without distributions."""
        tops = [max(shares.values()) for _, _, _, shares in self.distributions() if shares]
        return math.fsum(tops) / len(tops) if tops else None

    def tables(self) -> Mapping[str, list[dict[str, Any]]]:
        """Return the answers, each beside the distribution that it is from, for exports and reports."""
        rows = [
            {
                "agent": key.agent_id,
                "administration": key.administration,
                "sheet": key.sheet,
                "item": label,
                "answer": answer,
                "distribution": " ".join(f"{choice}:{share:.3g}" for choice, share in shares.items()),
            }
            for key, label, answer, shares in self.distributions()
        ]
        return {"answers": rows}

    def scores(self, instrument: Instrument, agent_id: int, administration: int) -> dict[str, float | None]:
        """Compute an agent's scores in one administration; None where an item has no answer."""
        return instrument.score(self.answers_to(instrument, agent_id, administration))

    def lacking(self) -> dict[str, dict[Lack, int]]:
        """Count missing answers by item and reason, without complete items."""
        by_label = {label: count.lacks for label, count in self.counts.items()}
        return {
            label: {lack: n for lack, n in own.items() if n} for label, own in by_label.items() if any(own.values())
        }

    def totals(self) -> ItemCount:
        """Sum the counts of all items."""
        counts = list(self.counts.values())
        return ItemCount(
            sum(count.asked for count in counts),
            sum(count.answered for count in counts),
            sum(count.out_of_range for count in counts),
            sum(count.unparsable for count in counts),
        )

    @property
    def n_straight(self) -> int:
        """Number of times an instrument with reversed items was answered with one number throughout."""
        return sum(line.is_straight for line in self._lines.values())

    def quality(self) -> Mapping[str, tuple[int, int]]:
        """Return how many items lack an answer, by reason, and how often one number answers all of an instrument."""
        totals = self.totals()
        n_long = sum(line.is_long for line in self._lines.values())
        return {
            "items_missing": (totals.missing, totals.asked),
            "items_unparsable": (totals.unparsable, totals.asked),
            "items_off_scale": (totals.out_of_range, totals.asked),
            "straight_lined": (self.n_straight, n_long),
        }


def _of_sheet(key: AnswerKey) -> AnswerKey:
    """Return the key of a sheet, of that of one of its draws."""
    return key._replace(sheet=key.sheet.partition(DRAW)[0])
