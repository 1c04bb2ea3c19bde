"""People in the place of a language model: their questions, as forms and at a terminal."""
