"""The page of Life with minds: `mesa-llm app notebooks/course/01_life/page.py`.

The cells begin with the recorded replies of a language model. Choose other minds or another pattern at the side, and
press Reset.
"""

import minds
from mesa.visualization import SolaraViz, SpaceRenderer
from mesa.visualization.components import AgentPortrayalStyle

from mesa_llm.viz import ActionTable, AgentInspector, Measures

RECORDED = {f"recording: rule {wording}": wording for wording in minds.WORDINGS}
FIRST = "recording: rule stated"


class LifeOnAPage(minds.LifeWithMinds):
    """Life with the minds that a visitor chooses; a recorded run ends after its last step."""

    def __init__(self, decides=FIRST, pattern="blinker", size=8, rng=1):
        self.is_recorded = decides in RECORDED
        if self.is_recorded:
            super().__init__(**minds.recorded_options(RECORDED[decides]))
        else:
            super().__init__(pattern, size, decides, rng=rng)

    def step(self):
        super().step()
        self.running = not self.is_recorded or self.time < minds.STEPS


def portray(cell):
    """Draw living cells black."""
    return AgentPortrayalStyle(color="black" if cell.is_alive else "#f1f5f9", marker="s", size=400)


def even(axes):
    """Draw cells as squares, without numbers."""
    axes.set(xticks=[], yticks=[], aspect="equal")


model = LifeOnAPage()
renderer = SpaceRenderer(model, backend="matplotlib").setup_agents(portray)
renderer.post_process = even
renderer.draw_agents()
page = SolaraViz(
    model,
    renderer,
    components=[(Measures, 0), (AgentInspector, 1), (ActionTable, 1)],
    model_params={
        "decides": {
            "type": "Select",
            "value": FIRST,
            "values": [*RECORDED, "rule", "random"],
            "label": "Who decides",
        },
        "pattern": {"type": "Select", "value": "blinker", "values": list(minds.PATTERNS), "label": "Pattern"},
    },
    name="Life with minds",
)
