"""People in place of a language model, who are asked in forms or at a terminal."""
