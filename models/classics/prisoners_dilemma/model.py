"""An iterated prisoner's dilemma tournament: guests who think play against well-known strategies."""

from __future__ import annotations

from statistics import fmean
from typing import Annotated, Any, Literal, Unpack

from mesa.datacollection import DataCollector
from pydantic import Field

from mesa_llm import AgentConfig, LLMAgent, LLMModel, LLMOptions, LLMScenario, Observation, Slider, ToolError, Turn
from models.classics.prisoners_dilemma.game import STRATEGIES, Made, Move, points

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
"""Maximum number of earlier rounds that a player reads of."""


class DilemmaScenario(LLMScenario):
    """Parameters of the tournament."""

    guests: Annotated[int, Field(ge=0, le=20), Slider(0, 10)] = 1
    """Number of players who think with a language model, besides one of each strategy."""

    twin: StrategyName = "tit_for_tat"
    """Strategy of the guests' rule twins."""

    rounds: Annotated[int, Field(ge=1), Slider(5, 200, 5)] = 20
    """Number of rounds that each pair plays; one in a step."""

    noise: Annotated[float, Field(ge=0, le=1), Slider(0, 0.5, 0.01)] = 0.0
    """Probability that a move comes out as the other one."""

    announces_end: bool = False
    """Whether language models read how many rounds there will be."""

    memory: str = "none"
    """Memory of the guests, besides the history of each pair, which they read in any case."""


class Player(LLMAgent):
    """A player, by a strategy or by its own mind.

    Attributes:
        strategy: Name of its strategy; of a guest, of its rule twin.
        is_guest: Whether it is a guest.
        moves: Opponent → own moves against it, first to last.
        score: Points so far.
    """

    def __init__(self, model: DilemmaModel, strategy: str, *, is_guest: bool = False, **components: Any) -> None:
        """Enter the tournament.

        Args:
            model: The tournament.
            strategy: Name of its strategy; of a guest, of its rule twin.
            is_guest: Whether it thinks with what the model thinks with; else by rule.
            **components: `config`, `memory`, `tools`.
        """
        super().__init__(model, llm=None if is_guest else "rule", **components)
        self.strategy = strategy
        self.is_guest = is_guest
        self.moves: dict[int, list[Made]] = {}
        self.score = 0

    def facing(self, opponent: Player) -> Observation:
        """Show the history with an opponent, and ask for a move."""
        own, other = self.moves.get(opponent.unique_id, []), opponent.moves.get(self.unique_id, [])
        shown = list(enumerate(zip(own, other, strict=True), start=1))[-MAX_SHOWN:]
        history = "\n".join(
            f"Round {index}: you {mine}, player {opponent.unique_id} {its}." for index, (mine, its) in shown
        )
        text = f"You play with player {opponent.unique_id}. This is round {len(own) + 1}."
        question = "What do you do in this round?"
        return Observation(
            "\n".join(filter(None, (text, history, question))),
            answer=Move,
            facts=(own, other),
            label=f"against {opponent.unique_id}",
        )

    def rule(self, seen: Observation) -> Move:
        """Play the strategy."""
        own, other = seen.facts
        return STRATEGIES[self.strategy](own, other, self.random)

    def receive(self, answer: Move, label: str, world: str) -> str:
        """Make a move; chance may turn it into the other one."""
        opponent_id = int(label.removeprefix("against "))
        if opponent_id not in self.model.players:
            raise ToolError(f"there is no player {opponent_id}.")
        is_turned = self.random.random() < self.model.scenario.noise
        move: Made = answer if not is_turned else "defect" if answer == "cooperate" else "cooperate"
        self.model.pending[self.unique_id, opponent_id] = move
        return f"You chose to {answer} with player {opponent_id}."

    @property
    def mean_score(self) -> float:
        """Points a round and opponent: 3 if all cooperate, 1 if all defect."""
        n_made = sum(map(len, self.moves.values()))
        return self.score / n_made if n_made else 0.0

    @property
    def cooperation(self) -> float:
        """Share of its moves that were cooperation, so far."""
        made = [move for moves in self.moves.values() for move in moves]
        return fmean(move == "cooperate" for move in made) if made else 0.0


class DilemmaModel(LLMModel):
    """All pairs play a round in each step: everybody decides at once, against each opponent apart.

    Attributes:
        players: Number of a player → the player.
        pending: (player, opponent) → its move in this step.
    """

    scenario_class = DilemmaScenario
    scenario: DilemmaScenario

    def __init__(self, scenario: DilemmaScenario | None = None, **options: Unpack[LLMOptions]) -> None:
        super().__init__(scenario, **options)
        fields = self.scenario
        for name in STRATEGIES:
            Player(self, name, config=AgentConfig(name=name), memory="none")
        for index in range(1, fields.guests + 1):
            Player(self, fields.twin, is_guest=True, config=AgentConfig(name=f"guest {index}"), memory=fields.memory)
        self.players: dict[int, Player] = {player.unique_id: player for player in self.agents}
        self.pending: dict[tuple[int, int], Made] = {}
        self.activation = DilemmaModel.pairings
        self.datacollector = DataCollector(
            {"cooperation": "cooperation", "guests_cooperation": "guests_cooperation", "guests_score": "guests_score"},
            {"score": "mean_score"},
        )
        self.datacollector.collect(self)

    def pairings(self) -> list[list[Turn]]:
        """Return one stage in which every player faces each of the others."""
        pairs = [(one, other) for one in self.agents for other in self.agents if one is not other]
        return [[Turn(one, one.facing(other)) for one, other in pairs]]

    def end_step(self) -> None:
        """Settle the round of each pair; who made no move forfeits it."""
        for one in self.agents:
            for other in self.agents:
                if one is not other:
                    own = self.pending.get((one.unique_id, other.unique_id), "forfeit")
                    its = self.pending.get((other.unique_id, one.unique_id), "forfeit")
                    one.moves.setdefault(other.unique_id, []).append(own)
                    one.score += points(own, its)
        self.pending.clear()
        self.running = self.now < self.scenario.rounds

    @property
    def cooperation(self) -> float:
        """Share of all moves so far that were cooperation."""
        return fmean(player.cooperation for player in self.agents)

    @property
    def guests_cooperation(self) -> float | None:
        """Share of the guests' moves so far that were cooperation; None without guests."""
        guests = [player.cooperation for player in self.agents if player.is_guest]
        return fmean(guests) if guests else None

    @property
    def guests_score(self) -> float | None:
        """Guests' points a round and opponent; None without guests."""
        guests = [player.mean_score for player in self.agents if player.is_guest]
        return fmean(guests) if guests else None

    def ranking(self) -> list[tuple[str, float]]:
        """Return names and points a round and opponent, best first."""
        scores = [(player.config.name, player.mean_score) for player in self.agents]
        return sorted(scores, key=lambda row: -row[1])

    def results(self) -> dict[str, Any]:
        """Return what was collected last, and everybody's points a round and opponent."""
        return {**super().results(), "scores": dict(self.ranking())}
