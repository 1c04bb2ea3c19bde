"""All models in the browser: `solara run app.py`."""

from mesa_llm.gallery_page import routes as routes
