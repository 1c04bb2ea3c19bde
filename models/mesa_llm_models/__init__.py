"""Ready models, one folder each: `README.md`, `model.py`, `agents.py`, `app.py`."""
