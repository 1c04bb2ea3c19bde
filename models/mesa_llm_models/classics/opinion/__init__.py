"""People with bounded confidence, who compromise only with those who think much as they do."""
