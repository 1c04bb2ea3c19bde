"""Sotopia: people with private goals meet in pairs, many pairs at once, and a judge rates their interaction."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Unpack, cast

import pandas as pd
from mesa.datacollection import DataCollector

from mesa_llm import LLM, ConfigError, Decision, Failure, LLMModel, LLMOptions, Turn
from mesa_llm.text import counted, one_line, suggestion
from mesa_llm_models.sotopia.agents import RolePlayer
from mesa_llm_models.sotopia.episodes import Episode, end_rules
from mesa_llm_models.sotopia.judge import dimensions_of, judge_episodes
from mesa_llm_models.sotopia.scenario import SotopiaScenario
from mesa_llm_models.sotopia.scenes import Pairing, Scenes, load_scenes
from mesa_llm_models.sotopia.scores import GOAL, means_of, rating_table, score_table, summary_of


class SotopiaModel(LLMModel):
    """Pairs of people who talk and act, each pair in its own room; a step is one turn in all rooms.

    `llm={"tested": …, "partner": …, "judge": …}` names language models by role.

    Attributes:
        scenes: Characters, relationships, situations and pairings.
        episodes: The meetings.
        dimensions: Dimensions rated by the judges.
        n_judge_failures: Number of failed judgements so far, including those that succeeded on retry.
    """

    goes_on_after_failures = True  # there is more to do than what failed
    scenario_class = SotopiaScenario
    scenario: SotopiaScenario
    changeable = ("max_turns", "max_stale")

    def __init__(self, scenario: SotopiaScenario | None = None, **options: Unpack[LLMOptions]) -> None:
        """Load the scenes, and seat the persons.

        Args:
            scenario: The parameters; None for those given by keyword, and the defaults.
            **options: Options of all models, and fields of the scenario.

        Raises:
            ConfigError: If scenes or dimensions cannot be read, seats and partner are inconsistent, or no meetings are
                left.
        """
        own_activation = options.get("activation")
        super().__init__(scenario, **options)
        if own_activation is None:
            self.activation = SotopiaModel.first_stage
        chosen = self.scenario
        self.dimensions = dimensions_of(chosen.dimensions)
        self.scenes = self.make_scenes()
        self.n_judge_failures = 0
        self._judges: list[str | LLM] | None = None
        self._is_called = True
        self.is_of_two = True
        self._check_seats()
        meetings = [(pairing, seats) for pairing in self._drawn() for seats in self._tested_seats(pairing)]
        if not meetings:
            raise ConfigError("only_seats leaves no meetings: it names seats that seats= does not test")
        self.is_of_two = all(len(pairing.character_ids) == 2 for pairing, _ in meetings)
        self.episodes = [Episode(self, index, *meeting) for index, meeting in enumerate(meetings)]
        self.worlds = tuple(episode.room for episode in self.episodes)
        if chosen.judge is not None or "judge" in self._by_role:
            for judge in self.judges:  # fails now if its provider is unknown, rather than at the end
                self.engine.open(judge, is_auxiliary=True)
        self.datacollector = DataCollector(
            {
                "over": "n_over",
                "lines": "n_lines",
                "judged": "n_judged",
                "judge_failures": "n_judge_failures",
                "goal": "mean_goal",
            }
        )
        self.datacollector.collect(self)

    def make_scenes(self) -> Scenes:
        """Load characters, relationships, situations and pairings. Override to use your own scenes."""
        return load_scenes(self.scenario.items)

    def _drawn(self) -> list[Pairing]:
        chosen = self.scenario
        pairings = self.scenes.pairings_of(chosen.subset)
        if not pairings:
            raise ConfigError(f"subset={chosen.subset!r}: items={chosen.items!r} contains no such situation")
        if chosen.sampling == "random":
            return self.random.choices(pairings, k=chosen.n_dyads)
        return pairings[: chosen.n_dyads]

    def _check_seats(self) -> None:
        """Check that there is a partner exactly where needed, and that `only_seats` matches the scenes.

        Raises:
            ConfigError: If a partner is missing or unused, or `only_seats` names an unknown situation.
        """
        chosen = self.scenario
        if not self._has_partner and (chosen.seats != "first" or chosen.only_seats):
            raise ConfigError("seats and only_seats select the seat tested against a partner; set partner=")
        if self._has_partner and chosen.mode != "agents":
            raise ConfigError(f"mode={chosen.mode!r}: one author writes all parts, leaving none for a partner")
        if unknown := [one for one in self.scenario.only_seats or {} if one not in self.scenes.situations]:
            close = suggestion(unknown[0], self.scenes.situations)
            raise ConfigError(f"only_seats: items={self.scenario.items!r} contains no situation {unknown[0]!r}{close}")

    def _tested_seats(self, pairing: Pairing) -> list[tuple[int, ...]]:
        chosen = self.scenario
        if not self._has_partner:
            return [tuple(range(len(pairing.character_ids)))]
        seats = {"first": [0], "second": [1], "both": [0, 1]}[chosen.seats]
        only = (chosen.only_seats or {}).get(pairing.situation_id)
        return [(seat,) for seat in seats if only in (None, seat)]

    # -- language models by role

    @property
    def is_stepwise(self) -> bool:
        """Whether an author writes move by move."""
        return self.scenario.mode == "script by moves"

    @property
    def _by_role(self) -> Mapping[Any, str | LLM]:
        llm = self.llm
        return cast("Mapping[Any, str | LLM]", llm) if type(llm) is not str and isinstance(llm, Mapping) else {}

    @property
    def _has_partner(self) -> bool:
        return self.scenario.partner is not None or "partner" in self._by_role

    def llm_of(self, agent: Any) -> str | LLM:
        """Return an agent's language model: the one `llm=` or `partner` set for its role, or else as in any model."""
        is_partner = isinstance(agent, RolePlayer) and not agent.is_tested
        role = "partner" if is_partner else "tested"
        if role in (by_role := self._by_role):
            return by_role[role]
        if is_partner and self.scenario.partner is not None:
            return self.scenario.partner
        return super().llm_of(agent)

    @property
    def players(self) -> list[Any]:
        """The agents that play: the persons, or the authors of scripts."""
        if self.scenario.mode == "agents":
            return [person for episode in self.episodes for person in episode.persons]
        return [episode.author for episode in self.episodes]

    @property
    def judges(self) -> list[str | LLM]:
        """Language models of the judges; empty where language models play and no judge is set."""
        if self._judges is None:
            named = self.scenario.judge
            if "judge" in self._by_role:
                self._judges = [self._by_role["judge"]]
            elif named is not None:
                self._judges = [*dict.fromkeys(name.strip() for name in named.split(",") if name.strip())]
            else:
                is_live = any(player.opened.is_language_model for player in self.players)
                self._judges = [] if is_live else ["rule"]
        return self._judges

    def judge_name(self, judge: str | LLM) -> str:
        """Return a judge's name for results: its model and endpoint."""
        return self.engine.open(judge, is_auxiliary=True).name

    @property
    def judge(self) -> str | None:
        """Names of all judges; None without judges."""
        return " + ".join(dict.fromkeys(map(self.judge_name, self.judges))) or None

    def _check_judges(self) -> None:
        """Check that no model under test judges itself.

        Raises:
            ConfigError: If one does, and `same_judge` does not allow it.
        """
        tested = [one for one in self.players if getattr(one, "is_tested", True)]
        names = {one.opened.name for one in tested if one.opened.is_language_model}
        for judge in self.judges:
            name = self.judge_name(judge)
            if name in names and not self.scenario.same_judge:
                raise ConfigError(f"{name} would judge itself; choose another judge=, or set same_judge=True")

    # -- a step

    def start_step(self) -> None:
        """Before the first turn, check the judges, and have missing goals written."""
        if self.now == 1:
            self._check_judges()
            self._write_goals()

    def _write_goals(self) -> None:
        """Have a seat's language model write its missing goal. On failure, it stays empty."""
        lacking = [(e, seat) for e in self.episodes for seat, goal in enumerate(e.goals) if not goal.strip()]
        by_llm: dict[str | int, list[tuple[Episode, int]]] = {}
        for episode, seat in lacking:
            llm = episode.player(seat).llm
            by_llm.setdefault(llm if isinstance(llm, str) else id(llm), []).append((episode, seat))
        for seats in by_llm.values():
            llm = seats[0][0].player(seats[0][1]).llm
            texts = [episode.goal_prompt(seat) for episode, seat in seats]
            goals = self.consult(llm, texts, purpose="goal", rule=lambda _: "Get on well with the others.")
            for (episode, seat), goal in zip(seats, goals, strict=True):
                if isinstance(goal, Decision):
                    episode.set_goal(seat, one_line(str(goal.answer), 600))

    def scenario_changed(self) -> None:
        """Pass changed limits on to the rooms."""
        for episode in self.episodes:
            episode.room.end_rules = end_rules(self.scenario)

    @property
    def open_episodes(self) -> list[Episode]:
        """Episodes still in progress."""
        return [episode for episode in self.episodes if not episode.end]

    def first_stage(self) -> list[list[Turn]]:
        """Begin a turn in all rooms, and query those whose turn it is; with moderators, query these first."""
        episodes = self.open_episodes
        if self.scenario.mode != "agents":
            return [[Turn(e.author, e.author.observe()) for e in episodes if e.author is not None]]
        for episode in episodes:
            episode.begin_turn()
        self._is_called = self.scenario.order != "moderator"
        if not self._is_called:
            return [[Turn(e.moderator, e.moderator.observe()) for e in episodes if e.moderator is not None]]
        return [self._turns(episodes)]

    def next_stage(self, acted: list[Any]) -> list[Turn]:
        """Return the turns of the moderators' chosen speakers; empty without moderators."""
        if self._is_called:
            return []
        self._is_called = True
        episodes = self.open_episodes
        for episode in episodes:
            episode.room.call(episode.host.call(episode.room))
        return self._turns(episodes)

    @staticmethod
    def _turns(episodes: Sequence[Episode]) -> list[Turn]:
        return [
            Turn(episode.persons_by_id[agent_id], episode.asked(agent_id, seen))
            for episode in episodes
            for agent_id, seen in episode.room.due().items()
        ]

    def end_step(self) -> None:
        """End the turn in all rooms, and have completed episodes judged."""
        failures = {key: last.reason for key, last in self.last_decisions.items() if isinstance(last, Failure)}
        episodes = self.open_episodes if self.scenario.mode == "agents" else []
        for episode in episodes:
            episode.end_turn(failures)
        if self.scenario.mode != "agents":
            self._end_scripts(failures)
        over = [episode for episode in self.episodes if episode.end and not episode.ratings]
        if over and self.judges:
            by_index = {episode.index: episode for episode in over}
            for rating in judge_episodes(self, over):
                by_index[rating.episode].ratings.append(rating)
        self.running = bool(self.open_episodes)

    def _end_scripts(self, failures: Mapping[int, str]) -> None:
        for episode in self.open_episodes:
            author = episode.author
            has_failed = author is not None and author.unique_id in failures
            if not self.is_stepwise:
                code = "failed" if has_failed else "script"
                episode.end, episode.code = "no script came" if has_failed else "the script is over", code
            elif episode.room.n_turns < self.now:
                episode.room.begin_turn()
                episode.end_turn({})

    # -- measures

    @property
    def n_over(self) -> int:
        """Number of completed episodes."""
        return sum(bool(episode.end) for episode in self.episodes)

    @property
    def n_lines(self) -> int:
        """Number of lines so far, in all rooms: speech, gestures, actions, and departures."""
        return sum(len(episode.room.lines) for episode in self.episodes)

    @property
    def n_judged(self) -> int:
        """Number of episodes with a usable judgement."""
        return sum(any(one.scores is not None for one in episode.ratings) for episode in self.episodes)

    @property
    def mean_goal(self) -> float | None:
        """Mean goal score so far, over the ratings of persons under test; None if there are none."""
        goals = [
            one.scores[GOAL]
            for episode in self.episodes
            for one in episode.ratings
            if one.scores is not None and GOAL in one.scores and one.seat in episode.tested_seats
        ]
        return sum(goals) / len(goals) if goals else None

    def ratings(self) -> pd.DataFrame:
        """Return all judgements, one row per judgement and person; see `scores.rating_table`."""
        return rating_table(self.episodes, self.dimensions)

    def scores(self) -> pd.DataFrame:
        """Return the scores, one row per episode and seat; see `mesa_llm_models.sotopia.scores.score_table`."""
        return score_table(self.episodes, self.dimensions)

    def cost_estimate(self) -> dict[str, int]:
        """Compute the maximum number of requests of a run, without repairs, retries and generated goals.

        Returns:
            Numbers of `episodes`, `decisions` (of the players), `judgements`, and `calls` (both together).
        """
        chosen, n = self.scenario, len(self.episodes)
        seated = sum(len(episode.persons) for episode in self.episodes)
        per_turn = {"simultaneous": seated, "moderator": 2 * n}.get(chosen.order, n)
        decisions = {"agents": per_turn * chosen.max_turns, "script": n}.get(chosen.mode, n * chosen.max_turns)
        judgements = n * len([one for one in self.judges if one != "rule"]) * chosen.judgements * (1 + chosen.swap)
        return {"episodes": n, "decisions": decisions, "judgements": judgements, "calls": decisions + judgements}

    def results(self) -> dict[str, Any]:
        """Return the judge, the scores by name, the hard subset first, counts of missing ones, and how episodes ended;
        a score without any judgement is None.
        """
        summary = summary_of(self.scores(), self.dimensions)
        scores = {name: None if _is_nan(value) else value for name, value in summary.items()}
        ends = dict(Counter(episode.code or "not over" for episode in self.episodes))
        return {"judge": self.judge, **scores, "ends": ends, "judge_failures": self.n_judge_failures}

    def story(self) -> str:
        """Describe how many meetings are over, how they ended, and how they were judged."""
        ends = Counter(episode.end for episode in self.episodes if episode.end).most_common()
        parts = [f"{counted(self.n_over, 'meeting')} of {len(self.episodes)} over, {counted(self.n_lines, 'line')}."]
        named = [f"{end} ({count})" for end, count in ends[:4]]
        if n_others := sum(count for _, count in ends[4:]):
            named.append(f"others ({n_others})")
        parts += [f"Ends: {'; '.join(named)}."] if ends else []
        if not self.n_judged:
            if self.n_judge_failures:
                reason = f"no judgement of {self.judge} could be used"
            else:
                reason = "nobody judges: name a judge=" if self.now > 1 and not self.judges else "nothing is judged yet"
            return "\n".join([*parts, f"There are no scores: {reason}."])
        means = means_of(self.scores(), self.dimensions)
        scores = ", ".join(f"{name} {value:.2f}" for name, value in means.items())
        return "\n".join([*parts, f"Judged by {self.judge}: {scores}."])


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
