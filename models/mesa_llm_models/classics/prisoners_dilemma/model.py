"""An iterated prisoner's dilemma tournament: guests who think play against well-known strategies."""

from __future__ import annotations

from functools import partial
from statistics import fmean
from typing import Annotated, Any, Literal, Unpack

import mesa
from mesa.datacollection import DataCollector
from pydantic import Field

from mesa_llm import (
    AgentConfig,
    Label,
    LazyObservation,
    LLMAgent,
    LLMModel,
    LLMOptions,
    LLMScenario,
    Observation,
    Slider,
    Structure,
    Turn,
)
from mesa_llm_models.classics.people import People, configs_of, known_as
from mesa_llm_models.classics.prisoners_dilemma.game import STRATEGIES, Made, Move, points
from mesa_llm_models.classics.prisoners_dilemma.text import TRAITS, Games, move_text, observation_text

StrategyName = Literal[
    "always_cooperate",
    "always_defect",
    "coin",
    "tit_for_tat",
    "tit_for_two_tats",
    "grudger",
    "pavlov",
    "tester",
]

MAX_SHOWN = 10
"""Maximum number of earlier rounds in a guest's observation."""

AGAINST = "against "
"""Beginning of the label of an observation; the id of the opponent follows."""


class DilemmaScenario(LLMScenario):
    """Parameters of the tournament."""

    guests: Annotated[int, Field(ge=0, le=20), Slider(0, 10), Structure(2, 4, dimension="population")] = 1
    """Number of players who think with a language model, besides one of each strategy."""

    regulars: Annotated[bool, Label("Known strategies")] = True
    """Whether a player of each known strategy takes part, besides the guests."""

    twin: StrategyName = "tit_for_tat"
    """Strategy of the guests' rule twins."""

    rounds: Annotated[int, Field(ge=1), Slider(5, 200, 5)] = 20
    """Number of rounds that each pair plays, one a step."""

    noise: Annotated[float, Field(ge=0, le=1), Slider(0, 0.5, 0.01)] = 0.0
    """Probability that a move turns into the other one."""

    announces_end: bool = False
    """Whether language models read how many rounds there will be."""

    people: Annotated[People, Label("Guests as people")] = "drawn"
    """Whether guests are people with names and traits, drawn with the seed, or all alike."""

    memory: str = "none"
    """Memory of the guests, besides the history of each pair, which they read in any case."""


class DilemmaPlayer:
    """A player, who meets all others in every round.

    Attributes:
        name: Its name.
        strategy: Name of its strategy; for a guest, that of its rule twin.
        moves: Opponent → own moves against it, first to last.
        score: Points so far.
    """

    model: Any
    random: Any
    unique_id: int

    def __init__(self, model: DilemmaModel, *, name: str, strategy: str, **components: Any) -> None:
        """Enter the tournament.

        Args:
            model: The tournament.
            name: Its name.
            strategy: Name of its strategy; for a guest, that of its rule twin.
            **components: Passed on.
        """
        super().__init__(model, **components)  # pyright: ignore[reportCallIssue]
        self.name = name
        self.strategy = strategy
        self.moves: dict[int, list[Made]] = {}
        self.score = 0

    def by_strategy(self, opponent: DilemmaPlayer) -> Move:
        """Return the move of its strategy against an opponent."""
        own, other = self.moves.get(opponent.unique_id, []), opponent.moves.get(self.unique_id, [])
        return STRATEGIES[self.strategy](own, other, self.random)

    def make(self, move: Move, opponent_id: int) -> None:
        """Make a move; chance may turn it into the other one."""
        is_turned = self.random.random() < self.model.scenario.noise
        outcome: Made = move if not is_turned else "defect" if move == "cooperate" else "cooperate"
        self.model.pending[self.unique_id, opponent_id] = outcome

    @property
    def mean_score(self) -> float:
        """Mean points a round and opponent: 3 if all cooperate, 1 if all defect."""
        n_made = sum(map(len, self.moves.values()))
        return self.score / n_made if n_made else 0.0

    @property
    def cooperation(self) -> float:
        """Share of its moves that were cooperation, so far."""
        all_moves = [move for moves in self.moves.values() for move in moves]
        return fmean(move == "cooperate" for move in all_moves) if all_moves else 0.0


class Regular(DilemmaPlayer, mesa.Agent):
    """Plays a known strategy by rule."""


class Guest(DilemmaPlayer, LLMAgent):
    """Decides for itself; its rule twin plays a strategy."""

    def facing(self, opponent: DilemmaPlayer) -> Observation:
        """Return the history with an opponent, with the question for a move."""
        fields = self.model.scenario
        own, other = self.moves.get(opponent.unique_id, []), opponent.moves.get(self.unique_id, [])
        last_round = fields.rounds if fields.announces_end else None
        return LazyObservation(
            partial(observation_text, Games(self._known(opponent), tuple(own), tuple(other), last_round, MAX_SHOWN)),
            answer=Move,
            facts={"opponent": opponent, "round": len(own) + 1, **_summary("own", own), **_summary("their", other)},
            label=f"{AGAINST}{opponent.unique_id}",
        )

    def rule(self, seen: Observation) -> Move:
        """Play the strategy."""
        return self.by_strategy(seen.facts["opponent"])

    def receive(self, answer: Move, label: str, world: str) -> str:
        """Make a move."""
        opponent_id = int(label.removeprefix(AGAINST))
        self.make(answer, opponent_id)
        return move_text(answer, self._known(self.model.players[opponent_id]))

    def _known(self, opponent: DilemmaPlayer) -> str:
        """Return how this player speaks of another one: by name, or by number."""
        is_person = isinstance(opponent, Guest) and self.model.scenario.people == "drawn"
        return known_as(opponent) if is_person else f"player {opponent.unique_id}"


def _summary(whose: str, moves: list[Made]) -> dict[str, Any]:
    """Return the last move and the share of cooperation, as facts; before the first round there is no share."""
    facts: dict[str, Any] = {f"{whose}_last": moves[-1] if moves else "none"}
    return facts | ({f"{whose}_cooperation": fmean(move == "cooperate" for move in moves)} if moves else {})


class DilemmaModel(LLMModel):
    """All pairs play a round in each step: guests decide at once, against each opponent apart.

    Attributes:
        players: Number of a player → the player.
        pending: (player, opponent) → its move in this step.
    """

    scenario_class = DilemmaScenario
    scenario: DilemmaScenario
    changeable = ("noise", "rounds")

    def __init__(self, scenario: DilemmaScenario | None = None, **options: Unpack[LLMOptions]) -> None:
        super().__init__(scenario, **options)
        fields = self.scenario
        for name in STRATEGIES if fields.regulars else ():
            Regular(self, name=name, strategy=name)
        for index, config in enumerate(configs_of(self, TRAITS, fields.guests), start=1):
            name = f"guest {index}"
            config = config or AgentConfig(name=name)
            Guest(self, name=name, strategy=fields.twin, config=config, memory=fields.memory)
        self.players: dict[int, DilemmaPlayer] = {player.unique_id: player for player in self.agents}
        self.pending: dict[tuple[int, int], Made] = {}
        self.activation = DilemmaModel.pairings
        self.datacollector = DataCollector(
            {"cooperation": "cooperation", "guests_cooperation": "guests_cooperation", "guests_score": "guests_score"},
            {"score": "mean_score"},
        )
        self.datacollector.collect(self)

    @property
    def moment(self) -> str:
        """The round, as guests remember it."""
        return f"In round {self.now}"

    @property
    def guests(self) -> list[Guest]:
        """The players who decide for themselves."""
        return [player for player in self.agents if isinstance(player, Guest)]

    def opponents(self, player: DilemmaPlayer) -> list[Any]:
        """Return all but one player."""
        return [other for other in self.agents if other is not player]

    def start_step(self) -> None:
        """Let the known strategies make their moves, which nobody sees before the round is over."""
        for player in self.agents:
            if isinstance(player, Regular):
                for other in self.opponents(player):
                    player.make(player.by_strategy(other), other.unique_id)

    def pairings(self) -> list[list[Turn]]:
        """Return one stage in which every guest faces each of the others."""
        return [[Turn(guest, guest.facing(other)) for guest in self.guests for other in self.opponents(guest)]]

    def end_step(self) -> None:
        """Settle the round of each pair; a player without a move forfeits it."""
        for one in self.agents:
            for other in self.opponents(one):
                own = self.pending.get((one.unique_id, other.unique_id), "forfeit")
                theirs = self.pending.get((other.unique_id, one.unique_id), "forfeit")
                one.moves.setdefault(other.unique_id, []).append(own)
                one.score += points(own, theirs)
        self.pending.clear()
        self.running = self.now < self.scenario.rounds

    @property
    def cooperation(self) -> float:
        """Share of all moves so far that were cooperation."""
        return fmean(player.cooperation for player in self.agents) if len(self.agents) else 0.0

    @property
    def guests_cooperation(self) -> float | None:
        """Share of the guests' moves so far that were cooperation; None without guests."""
        return fmean(guest.cooperation for guest in self.guests) if self.guests else None

    @property
    def guests_score(self) -> float | None:
        """Guests' points a round and opponent; None without guests."""
        return fmean(guest.mean_score for guest in self.guests) if self.guests else None

    def ranking(self) -> list[tuple[str, float]]:
        """Return names and points a round and opponent, best first."""
        scores = [(player.name, player.mean_score) for player in self.agents]
        return sorted(scores, key=lambda row: -row[1])

    def results(self) -> dict[str, Any]:
        """Return what was collected last, everybody's points a round and opponent, and, where they are scored, the mean
        probability with which guests cooperated.
        """
        found = {**super().results(), "scores": dict(self.ranking())}
        if self.engine.scoring == "probabilities":
            choices = self.runlog.probabilities()
            weights = choices.loc[choices["choice"] == "cooperate", "probability"]
            found["guests_probability"] = float(weights.mean()) if len(weights) else None
        return found
