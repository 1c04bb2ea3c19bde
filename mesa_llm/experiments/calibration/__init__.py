"""Calibration and sensitivity: what parameters have to do with results.

- `calibration`: the parameters with which a model follows observed series; `target`: the series, and steps held out.
- `posterior`: approximate Bayesian computation, and whether it recovers what is known.
- `sensitivity`: how much of a result is due to which parameter; `ranges`: ranges of parameters.
"""

import lazy_loader

from mesa_llm.errors import require_extra

require_extra("analysis", "calibration and sensitivity analysis")
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, submod_attrs={"calibration": ["CalibratedParameter", "Calibration", "Fit", "calibrate"]}
)
