"""The classics on one page, each as a rule twin and as a recorded language model.

Run it with `mesa-llm app models/mesa_llm_models/classics/app.py`.
"""

from __future__ import annotations

from typing import Any

import solara
from reacton import use_effect, use_memo, use_state
from solara.core import component

from mesa_llm.model.recording import advance_to
from mesa_llm.viz import Markup, Row, place_style
from mesa_llm_models.classics.charts import TwinsView
from mesa_llm_models.classics.recordings import CLASSICS, Classic

OPPONENTS = {"recorded language model": "", "random baseline": "random"}
"""Label of the counterpart of the rule twin → its language model; empty: as recorded."""


@component
def Twins(classic: Classic, llm: str) -> None:
    """Show a rule twin beside its counterpart in the same world, step by step.

    Args:
        classic: The model.
        llm: Language model of the counterpart; empty: as recorded.
    """
    run, set_run = use_state(0)
    step, set_step = use_state(0)
    twins = use_memo(lambda: (classic.twin(), classic.twin(llm) if llm else classic.run.start()), [run])

    def close() -> None:
        for twin in twins:
            twin.close()

    use_effect(lambda: close, [run])

    def advance() -> None:
        for twin in twins:
            advance_to(twin, step)

    def again() -> None:
        set_step(0)
        set_run(run + 1)

    with solara.Sidebar(), solara.Column(style={"padding": "0 8px"}):
        solara.Button("Step", on_click=lambda: set_step(step + 1), disabled=step >= classic.steps, color="primary")
        solara.Button("To the end", on_click=lambda: set_step(classic.steps), disabled=step >= classic.steps)
        solara.Button("Again", on_click=again, disabled=step == 0)
    use_memo(advance, [run, step])
    TwinsView(classic.name, *twins)
    rows = use_memo(lambda: _rows(twins), [run, step])
    Markup("table.html", columns=("Measure", "Rule twin", "Beside it"), rows=rows, more=0, nothing="")


def _rows(twins: Any) -> list[Any]:
    """Return the latest measures of both, as rows of a table."""
    rule, llm = (twin.results() for twin in twins)
    return [
        Row((name.replace("_", " "), f"{value:.4g}", f"{llm[name]:.4g}"))
        for name, value in rule.items()
        if isinstance(value, int | float) and isinstance(llm.get(name), int | float)
    ]


@component
def Page() -> None:
    """Let a visitor choose a classic, and the counterpart of its rule twin."""
    name, choose = use_state(next(iter(CLASSICS)))
    beside, put = use_state(next(iter(OPPONENTS)))
    place_style()
    with solara.AppBar():
        solara.AppBarTitle("Classics: rule and language model")
    with solara.Sidebar(), solara.Column(style={"padding": "24px 8px"}):
        solara.Select("Model", values=list(CLASSICS), value=name, on_value=choose)
        solara.Select("Beside the rule twin", values=list(OPPONENTS), value=beside, on_value=put)
    with solara.Column(classes=["mesa-llm-main"]), solara.Card(margin=0):
        Twins(CLASSICS[name], OPPONENTS[beside]).key(f"{name} {beside}")


page = Page()
