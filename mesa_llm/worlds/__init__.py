"""State and rules of the places agents act in; each world stands alone."""
