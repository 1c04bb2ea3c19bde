"""The models of `rules.py` in plain Mesa, with the same rules and draws; and a beer chain in both forms."""

from __future__ import annotations

from statistics import fmean
from typing import Annotated, Any, Unpack

import mesa
from mesa.datacollection import DataCollector
from mesa.discrete_space import CellAgent, OrthogonalMooreGrid, OrthogonalVonNeumannGrid
from pydantic import Field

from mesa_llm import LazyObservation, LLMAgent, LLMModel, LLMOptions, LLMScenario, Observation, ToolCall, action
from mesa_llm.engine.activation import in_order
from mesa_llm.model.measures import gini
from mesa_llm_models.classics.prisoners_dilemma.game import STRATEGIES, points

# -- wealth


class PlainWalker(CellAgent):
    """A person who walks about with coins."""

    cell: Any

    def __init__(self, model: Any, cell: Any) -> None:
        """Begin in a cell, with a coin."""
        super().__init__(model)
        self.cell = cell
        self.wealth = 1
        self.met: Any = None

    def walk(self) -> None:
        """Go to a neighbouring cell, and meet somebody there."""
        self.cell = self.cell.neighborhood.select_random_cell()
        others = [other for other in self.cell.agents if other is not self]
        self.met = self.random.choice(others) if others else None

    def decide(self) -> bool:
        """Give whenever there is a coin, and somebody."""
        return self.wealth > 0 and self.met is not None

    def act(self, gives: bool) -> None:
        """Give, if there is still a coin."""
        if gives and self.wealth > 0:
            self.wealth -= 1
            self.met.wealth += 1
            self.model.n_gifts += 1


class PlainWealth(mesa.Model):
    """Everybody walks to a cell and meets somebody there; then all decide, and give in an order drawn."""

    def __init__(self, rng: int, n_agents: int = 30, size: int = 5) -> None:
        """Put everybody on the grid."""
        super().__init__(rng=rng)
        self.grid = OrthogonalMooreGrid((size, size), random=self.random)
        for cell in self.random.choices(list(self.grid.all_cells), k=n_agents):
            PlainWalker(self, cell)
        self.n_gifts = self.n_decisions = 0
        self.datacollector = DataCollector({name: name for name in ("gini", "n_gifts")}, {"wealth": "wealth"})
        self.datacollector.collect(self)

    @property
    def gini(self) -> float:
        """Gini coefficient of the coins."""
        return gini(walker.wealth for walker in self.agents)

    def step(self) -> None:
        """Let all walk, decide together, and act in an order drawn."""
        self.n_gifts = 0
        self.agents.shuffle_do("walk")
        _decide_and_act(self, list(self.agents))
        self.datacollector.collect(self)


def _decide_and_act(model: Any, agents: list[Any]) -> None:
    """Let agents decide on the same state, and act in an order drawn."""
    model.random.shuffle(agents)
    decisions = [agent.decide() for agent in agents]
    model.n_decisions += len(agents)
    for agent, decision in zip(agents, decisions, strict=True):
        if agent.model is not None:
            agent.act(decision)


# -- Schelling


class PlainResident(CellAgent):
    """A resident, of one of two colours."""

    cell: Any

    def __init__(self, model: Any, cell: Any, colour: bool) -> None:
        """Move in."""
        super().__init__(model)
        self.cell = cell
        self.colour = colour

    @property
    def likeness(self) -> float:
        """Share of its neighbours who have its colour."""
        neighbours: list[Any] = list(self.cell.get_neighborhood(radius=1).agents)
        return fmean(other.colour == self.colour for other in neighbours) if neighbours else 0.0

    @property
    def is_happy(self) -> bool:
        """Whether enough neighbours have its colour."""
        return self.likeness >= self.model.homophily

    def decide(self) -> bool:
        """Move if unhappy, and there is room."""
        return not self.is_happy and len(self.model.agents) < self.model.size**2

    def act(self, moves: bool) -> None:
        """Move, if so decided."""
        if moves:
            self.cell = self.model.grid.select_random_empty_cell()
            self.model.n_moves += 1


class PlainSchelling(mesa.Model):
    """Residents decide on the same map whether to stay; then those who leave move, one after another."""

    def __init__(self, rng: int, size: int = 8, homophily: float = 0.4) -> None:
        """Build the town."""
        super().__init__(rng=rng)
        self.size, self.homophily = size, homophily
        self.grid = OrthogonalMooreGrid((size, size), capacity=1, random=self.random)
        for cell in self.grid.all_cells:
            if self.random.random() < 0.8:
                PlainResident(self, cell, self.random.random() < 0.5)
        self.n_moves = self.n_decisions = 0
        self.datacollector = DataCollector({name: name for name in ("likeness", "happy", "n_moves")})
        self.datacollector.collect(self)

    @property
    def likeness(self) -> float:
        """Mean share of neighbours of one's own colour."""
        return fmean(agent.likeness for agent in self.agents)

    @property
    def happy(self) -> int:
        """Number of residents with enough neighbours of their own colour."""
        return sum(agent.is_happy for agent in self.agents)

    def step(self) -> None:
        """Let all decide together, and act in an order drawn; end when everybody is happy."""
        self.n_moves = 0
        _decide_and_act(self, list(self.agents))
        self.running = self.happy < len(self.agents)
        self.datacollector.collect(self)


# -- prisoner's dilemma


class PlainPlayer(mesa.Agent):
    """A player with a strategy, who meets all others in every round."""

    def __init__(self, model: Any, strategy: str) -> None:
        """Enter the tournament."""
        super().__init__(model)
        self.strategy = strategy
        self.moves: dict[int, list[str]] = {}
        self.score = 0

    def by_strategy(self, opponent: Any) -> Any:
        """Return the move of its strategy against an opponent."""
        own, other = self.moves.get(opponent.unique_id, []), opponent.moves.get(self.unique_id, [])
        return STRATEGIES[self.strategy](own, other, self.random)

    def make(self, move: str, opponent_id: int) -> None:
        """Make a move; chance may turn it into the other one."""
        if self.random.random() < self.model.noise:
            move = "defect" if move == "cooperate" else "cooperate"
        self.model.pending[self.unique_id, opponent_id] = move

    @property
    def mean_score(self) -> float:
        """Mean points a round and opponent."""
        n_made = sum(map(len, self.moves.values()))
        return self.score / n_made if n_made else 0.0

    @property
    def cooperation(self) -> float:
        """Share of its moves that were cooperation, so far."""
        all_moves = [move for moves in self.moves.values() for move in moves]
        return fmean(move == "cooperate" for move in all_moves) if all_moves else 0.0


class PlainDilemma(mesa.Model):
    """All pairs play a round in each step."""

    def __init__(self, rng: int, guests: int = 1, rounds: int = 20) -> None:
        """Let the players enter."""
        super().__init__(rng=rng)
        self.rounds, self.noise = rounds, 0.0
        regulars = [PlainPlayer(self, name) for name in STRATEGIES]
        self.guests = [PlainPlayer(self, "tit_for_tat") for _ in range(guests)]
        self.regulars = regulars
        self.pending: dict[tuple[int, int], str] = {}
        self.n_decisions = 0
        self.datacollector = DataCollector(
            {"cooperation": "cooperation", "guests_cooperation": "guests_cooperation", "guests_score": "guests_score"},
            {"score": "mean_score"},
        )
        self.datacollector.collect(self)

    def opponents(self, player: Any) -> list[Any]:
        """Return all but one player."""
        return [other for other in self.agents if other is not player]

    def step(self) -> None:
        """Let all move, and settle the round of each pair."""
        for player in self.regulars:
            for other in self.opponents(player):
                player.make(player.by_strategy(other), other.unique_id)
        pairs = [(guest, other) for guest in self.guests for other in self.opponents(guest)]
        moves = [guest.by_strategy(other) for guest, other in pairs]
        self.n_decisions += len(pairs)
        for (guest, other), move in zip(pairs, moves, strict=True):
            guest.make(move, other.unique_id)
        for one in self.agents:
            for other in self.opponents(one):
                own = self.pending.get((one.unique_id, other.unique_id), "forfeit")
                theirs = self.pending.get((other.unique_id, one.unique_id), "forfeit")
                one.moves.setdefault(other.unique_id, []).append(own)
                one.score += points(own, theirs)
        self.pending.clear()
        self.running = self.time < self.rounds
        self.datacollector.collect(self)

    @property
    def cooperation(self) -> float:
        """Share of all moves so far that were cooperation."""
        return fmean(player.cooperation for player in self.agents)

    @property
    def guests_cooperation(self) -> float:
        """Share of the guests' moves so far that were cooperation."""
        return fmean(guest.cooperation for guest in self.guests)

    @property
    def guests_score(self) -> float:
        """Guests' points a round and opponent."""
        return fmean(guest.mean_score for guest in self.guests)


# -- wolves and sheep


class PlainAnimal(CellAgent):
    """An animal, which moves, eats, starves and has young."""

    cell: Any
    gain: float
    birth_rate: float

    def __init__(self, model: Any, cell: Any, energy: float) -> None:
        """Enter the meadow."""
        super().__init__(model)
        self.cell = cell
        self.energy = energy

    def decide(self) -> Any:
        """Choose one of the best neighbouring cells."""
        best = self.preferred()
        return self.random.choice(best) if best else None

    def act(self, target: Any) -> None:
        """Go; then eat what is there, and starve or have young."""
        if target is not None:
            self.cell = target
        self.energy -= 1
        if self.feeds():
            self.energy += self.gain
        if self.energy < 0:
            self.remove()
        elif self.random.random() < self.birth_rate:
            self.energy /= 2
            type(self)(self.model, self.cell, self.energy)
            self.model.n_births += 1

    def preferred(self) -> list[Any]:
        """Return the neighbouring cells that it would go to."""
        raise NotImplementedError

    def feeds(self) -> bool:
        """Eat the food in its cell, and return whether there was any."""
        raise NotImplementedError


class PlainSheep(PlainAnimal):
    """Lives on grass, and keeps away from wolves."""

    gain, birth_rate = 4.0, 0.04

    def preferred(self) -> list[Any]:
        """Return the cells with grass and no wolf, else those without a wolf."""
        safe = [cell for cell in self.cell.neighborhood if not _those(PlainWolf, cell)]
        return [cell for cell in safe if cell.regrowth == 0] or safe

    def feeds(self) -> bool:
        """Eat the grass, if it has grown."""
        has_grass = self.cell.regrowth == 0
        if has_grass:
            self.cell.regrowth = 30
        return has_grass


class PlainWolf(PlainAnimal):
    """Lives on sheep."""

    gain, birth_rate = 20.0, 0.05

    def preferred(self) -> list[Any]:
        """Return the cells with sheep, else all."""
        cells = list(self.cell.neighborhood)
        return [cell for cell in cells if _those(PlainSheep, cell)] or cells

    def feeds(self) -> bool:
        """Eat one of the sheep, drawn."""
        sheep = _those(PlainSheep, self.cell)
        if sheep:
            self.random.choice(sheep).remove()
        return bool(sheep)


def _those(kind: type[Any], cell: Any) -> list[Any]:
    return [animal for animal in cell.agents if isinstance(animal, kind)]


class PlainMeadow(mesa.Model):
    """All sheep decide and go, then all wolves; each eats where it comes to, and starves or has young."""

    def __init__(self, rng: int, size: int = 8, n_sheep: int = 20, n_wolves: int = 6) -> None:
        """Let the animals enter."""
        super().__init__(rng=rng)
        self.grid: Any = OrthogonalVonNeumannGrid((size, size), torus=True, random=self.random)
        self.grid.create_property_layer("regrowth", default_value=0, dtype=int)
        for cell in self.grid.all_cells:
            cell.regrowth = 0 if self.random.random() < 0.5 else self.random.randrange(30)
        cells = list(self.grid.all_cells)
        for kind, number in ((PlainSheep, n_sheep), (PlainWolf, n_wolves)):
            for _ in range(number):
                kind(self, self.random.choice(cells), self.random.random() * 2 * kind.gain)
        self.n_births = self.n_decisions = 0
        self.datacollector = DataCollector({name: name for name in ("sheep", "wolves", "grass", "n_births")})
        self.datacollector.collect(self)

    def step(self) -> None:
        """Let the grass grow, the sheep go, then the wolves."""
        self.n_births = 0
        for cell in self.grid.all_cells:
            cell.regrowth = max(0, int(cell.regrowth) - 1)
        flocks = [list(self.agents_by_type.get(kind, ())) for kind in (PlainSheep, PlainWolf)]
        for flock in flocks:
            self.random.shuffle(flock)
        for flock in flocks:
            living = [animal for animal in flock if animal in self.agents]
            decisions = [animal.decide() for animal in living]
            self.n_decisions += len(living)
            for animal, decision in zip(living, decisions, strict=True):
                if animal in self.agents:
                    animal.act(decision)
        self.running = len(self.agents) > 0
        self.datacollector.collect(self)

    @property
    def sheep(self) -> int:
        """Number of sheep."""
        return len(self.agents_by_type.get(PlainSheep, ()))

    @property
    def wolves(self) -> int:
        """Number of wolves."""
        return len(self.agents_by_type.get(PlainWolf, ()))

    @property
    def grass(self) -> int:
        """Number of cells with grown grass."""
        return sum(cell.regrowth == 0 for cell in self.grid.all_cells)


# -- beer chain

STAGES = ("retailer", "wholesaler", "distributor", "factory")
"""The chain, from the customer on."""

DELAY, TARGET = 2, 12
"""Steps that a delivery takes, and the stock that a firm aims at."""


class Firm:
    """State and rules of one firm, the same in both forms.

    Attributes:
        stock: Units that it can ship.
        backlog: Units that its customer still waits for.
        demand: Units ordered from it in this step.
        under_way: Units that arrive in the next steps, the next first.
        cost: Costs so far: half a unit of money for each unit in stock, one for each unit that is late.
    """

    def __init__(self, model: Any, **components: Any) -> None:
        """Open with stock and deliveries under way."""
        super().__init__(model, **components)  # pyright: ignore[reportCallIssue]
        self.stock, self.backlog, self.demand, self.cost = TARGET, 0, 4, 0.0
        self.under_way = [4] * DELAY

    @property
    def wanted(self) -> int:
        """Units that bring stock and deliveries back to the target."""
        return max(0, self.demand + (TARGET + 4 * DELAY - self.stock - sum(self.under_way) + self.backlog) // 4)

    def receive_delivery(self) -> None:
        """Take in what arrives now, and ship what is asked for."""
        self.stock += self.under_way.pop(0)
        due = self.demand + self.backlog
        shipped = min(self.stock, due)
        self.stock -= shipped
        self.backlog = due - shipped
        self.cost += 0.5 * self.stock + self.backlog

    def place(self, units: int) -> None:
        """Order from the next firm, which sees it in the next step; the factory makes what it orders."""
        self.under_way.append(units)
        self.model.orders[self.unique_id] = units  # pyright: ignore[reportAttributeAccessIssue]


class _Chain:
    """What happens in a step besides the orders, the same in both forms."""

    agents: Any
    orders: dict[int, int]
    time: Any

    def ship(self) -> None:
        """Let all firms receive and ship, in order."""
        for firm in self.agents:
            firm.receive_delivery()

    def pass_orders(self) -> None:
        """Hand each order to the next firm; customers want 4 units, and 8 from the fifth step on."""
        firms = list(self.agents)
        for firm, customer in zip(firms[1:], firms, strict=False):
            firm.demand = self.orders[customer.unique_id]
        firms[0].demand = 4 if self.time < 5 else 8

    @property
    def cost(self) -> float:
        """Costs of the chain so far."""
        return sum(firm.cost for firm in self.agents)


class PlainFirm(Firm, mesa.Agent):
    """A firm in plain Mesa."""


class PlainChain(_Chain, mesa.Model):
    """A beer chain in plain Mesa."""

    def __init__(self, rng: int) -> None:
        """Open the firms."""
        super().__init__(rng=rng)
        for _ in STAGES:
            PlainFirm(self)
        self.orders, self.n_decisions = {}, 0
        self.datacollector = DataCollector({"cost": "cost"}, {"stock": "stock"})
        self.datacollector.collect(self)

    def step(self) -> None:
        """Let all firms ship, decide together, and order."""
        self.ship()
        firms = list(self.agents)
        units = [firm.wanted for firm in firms]
        self.n_decisions += len(firms)
        for firm, number in zip(firms, units, strict=True):
            firm.place(number)
        self.pass_orders()
        self.datacollector.collect(self)


class ThinkingFirm(Firm, LLMAgent):
    """A firm that a language model may lead."""

    def observe(self) -> Observation:
        """Return its stock, what is late, what arrives, and what was ordered."""
        stock, backlog, under_way, demand = self.stock, self.backlog, sum(self.under_way), self.demand
        return LazyObservation(
            lambda: f"You have {stock} units; {backlog} are late, {under_way} under way. {demand} were ordered."
        )

    def rule(self, seen: Observation) -> ToolCall:
        """Order what brings stock and deliveries back to the target."""
        return ToolCall("order", {"units": self.wanted})

    @action
    def order(self, units: Annotated[int, Field(ge=0, le=10_000)]) -> str:
        """Order from your supplier.

        Args:
            units: How many.
        """
        self.place(units)
        return f"You ordered {units}."


class ThinkingChain(_Chain, LLMModel):
    """A beer chain whose firms may think."""

    def __init__(self, scenario: LLMScenario | None = None, **options: Unpack[LLMOptions]) -> None:
        super().__init__(scenario, **options)
        for _ in STAGES:
            ThinkingFirm(self, memory="window:4")
        self.orders: dict[int, int] = {}
        self.activation = in_order
        self.datacollector = DataCollector({"cost": "cost"}, {"stock": "stock"})
        self.datacollector.collect(self)

    def start_step(self) -> None:
        """Let all firms ship."""
        self.ship()

    def end_step(self) -> None:
        """Pass the orders on."""
        self.pass_orders()
