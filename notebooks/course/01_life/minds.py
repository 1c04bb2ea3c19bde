"""Conway's Life with minds: cells of Mesa's example that are asked whether they are alive in the next step.

Record the runs of the notebook again, with any language model, in the folder of this file:

    python -c "import minds; minds.record('local:1.5b')"
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
from mesa.datacollection import DataCollector
from mesa.examples.basic.conways_game_of_life.agents import Cell
from mesa.examples.basic.conways_game_of_life.model import ConwaysGameOfLife

from mesa_llm import Decision, Failure, Mind, Observation, Outcome, RunLog, ToolCall, action, connect

PATTERNS = {
    "blinker": ((2, 1), (2, 2), (2, 3)),
    "block": ((2, 2), (2, 3), (3, 2), (3, 3)),
    "glider": ((1, 2), (2, 3), (3, 1), (3, 2), (3, 3)),
}
"""Name of a pattern → the coordinates of its living cells."""

TASK = "You are one cell of a grid, alive or dead. You have eight neighbours. You decide what you are in the next step."

WORDINGS = {
    "stated": f"{TASK} The rule: a living cell with 2 or 3 living neighbours is alive in the next step, and any other "
    "living cell is dead. A dead cell with exactly 3 living neighbours is alive in the next step, and any other dead "
    "cell is dead. Follow the rule exactly.",
    "named": f"{TASK} Follow the rule of Conway's Game of Life exactly.",
}
"""Name of a wording → what a cell reads first: the rule itself, or only its name."""

COLUMNS = ("step", "row", "column", "is_alive", "n_living", "next")
"""Columns of the table of decisions: when, which cell, what it saw, and whether it is alive in the next step."""

STEPS = 3
"""Number of steps of a recorded run."""

FOLDER = Path(__file__).parent / "recordings"
"""Folder of the recorded runs, one for each wording."""


def conway(is_alive: bool, n_living: int) -> bool:
    """Return whether a cell is alive in the next step, by Conway's rule.

    Args:
        is_alive: Whether it is alive now.
        n_living: Number of its eight neighbours that are alive.
    """
    return n_living == 3 or (is_alive and n_living == 2)


class ThinkingCell(Cell, Mind):
    """A cell that decides about its next state by itself, instead of computing it."""

    cell: Any
    neighbors: Any

    def determine_state(self) -> None:
        """Decide about the next state; a dead cell without living neighbours is not asked, and stays dead."""
        self._next_state = self.state
        if self.is_alive or self.n_living:
            self.step()

    @property
    def n_living(self) -> int:
        """Number of its neighbours that are alive."""
        return sum(neighbour.is_alive for neighbour in self.neighbors)

    def observe(self) -> Observation:
        """Show its state, and how many of its neighbours are alive."""
        state, n_living = "alive" if self.is_alive else "dead", self.n_living
        text = f"You are {state}. {n_living} of your 8 neighbours {'is' if n_living == 1 else 'are'} alive."
        return Observation(text, facts={"is_alive": self.is_alive, "n_living": n_living})

    @action(did="You chose to be alive.")
    def be_alive(self) -> str:
        """Be alive in the next step."""
        self._next_state = Cell.ALIVE
        return "You are alive."

    @action(did="You chose to be dead.")
    def be_dead(self) -> str:
        """Be dead in the next step."""
        self._next_state = Cell.DEAD
        return "You are dead."

    def rule(self, seen: Observation) -> ToolCall:
        """Follow Conway's rule."""
        return ToolCall("be_alive" if conway(**seen.facts) else "be_dead")

    def act(self, decision: Decision | Failure, seen: Observation | None = None) -> list[Outcome]:
        """Carry out the decision, and note it; after a failure the cell stays as it is."""
        before = self.is_alive, self.n_living
        outcomes = super().act(decision, seen)
        self.model.decided.append((int(self.model.time), self.y, self.x, *before, self._next_state == self.ALIVE))
        return outcomes


class LifeWithMinds(ConwaysGameOfLife):
    """Mesa's Life on a small torus, in which every cell that may change is asked.

    Attributes:
        engine: Its engine, with the run log.
        decided: One row a decision, as in `COLUMNS`.
    """

    def __init__(
        self,
        pattern: str = "blinker",
        size: int = 6,
        llm: str = "rule",
        wording: str = "stated",
        log: Path | None = None,
        replay: bool = False,
        rng: int = 1,
    ) -> None:
        """Place a pattern on a grid of dead cells.

        Args:
            pattern: Name of the pattern, in `PATTERNS`.
            size: Number of cells along each side of the torus; at least 5.
            llm: What cells think with.
            wording: What they read first, in `WORDINGS`.
            log: Run log to record in, or to replay from.
            replay: Whether to take all replies from the log, in the places where they were recorded: the memories that
                cells read had other words then.
            rng: Seed.
        """
        super().__init__(width=size, height=size, initial_fraction_alive=0, rng=rng)
        self.engine = connect(self, log=log, replay=replay)
        self.engine.runlog.is_in_place = replay
        for cell in ThinkingCell.enter(self.agents, llm=llm, config=WORDINGS[wording]):
            if cell.cell.coordinate in PATTERNS[pattern]:
                cell.state = Cell.ALIVE
        self.decided: list[tuple[int, int, int, bool, int, bool]] = []
        self.running = True
        self.datacollector = DataCollector({"alive": "alive", "faithful": "faithful"})
        self.datacollector.collect(self)

    @classmethod
    def recorded(cls, wording: str) -> LifeWithMinds:
        """Return the recorded run of a wording before its first step; stepped, it is replayed without requests."""
        return cls(**recorded_options(wording))

    def step(self) -> None:
        """Let all cells decide on the same grid, and then change together, as in Mesa's example."""
        super().step()
        self.datacollector.collect(self)

    @property
    def alive(self) -> int:
        """Number of living cells."""
        return sum(cell.is_alive for cell in self.agents)

    @property
    def faithful(self) -> float | None:
        """Share of all decisions so far that follow Conway's rule; None before the first."""
        if not self.decided:
            return None
        return fmean(conway(is_alive, n_living) == next_ for *_, is_alive, n_living, next_ in self.decided)

    @property
    def table(self) -> pd.DataFrame:
        """All decisions, one a row."""
        return pd.DataFrame(self.decided, columns=COLUMNS)

    @property
    def picture(self) -> list[list[int]]:
        """The grid, row by row: 1 where a cell is alive."""
        width, height = self.grid.dimensions
        living = {cell.cell.coordinate for cell in self.agents if cell.is_alive}
        return [[int((column, row) in living) for column in range(width)] for row in range(height)]


def recorded_options(wording: str) -> dict[str, Any]:
    """Return the arguments with which `LifeWithMinds` replays the recorded run of a wording."""
    return {"wording": wording, "llm": "local:1.5b", "log": FOLDER / f"{wording}.sqlite.gz", "replay": True}


def record(llm: str) -> None:
    """Record the run of each wording.

    Args:
        llm: Language model of the cells.
    """
    for wording in WORDINGS:
        with TemporaryDirectory() as folder:
            file = Path(folder) / "run.sqlite"
            model = LifeWithMinds(llm=llm, wording=wording, log=file)
            model.run_for(STEPS)
            model.engine.close()
            with closing(RunLog(file, "read")) as log:
                log.compact_to(FOLDER / f"{wording}.sqlite.gz")
        print(f"{wording}: {len(model.decided)} decisions, {model.faithful:.0%} by the rule")
