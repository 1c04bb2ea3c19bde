"""People with bounded confidence, who compromise or not."""
