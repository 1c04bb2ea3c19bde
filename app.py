"""All models in the browser: `mesa-llm app app.py`, or `solara run app.py`, which asks for no token."""

from mesa_llm.viz.server.gallery import routes as routes
