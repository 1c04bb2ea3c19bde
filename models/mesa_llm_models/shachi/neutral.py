"""Neutral text about rivers and stones to replace memories, irrelevant to every decision."""

NEUTRAL = (
    "The river bends twice before it reaches the old bridge.",
    "Granite is made of three minerals, and limestone mostly of one.",
    "In the morning the fog lies in the valley and lifts before noon.",
    "Herons stand still for a long time at the edge of the water.",
    "The path along the bank is paved with flat stones.",
    "Ash trees come into leaf later than oaks in most years.",
    "After rain the stream is brown for a day and then clears.",
    "The clock of the chapel has had no hands since it was painted.",
    "Swallows nest under the eaves and leave in September.",
    "A gravel bar divides the current into two arms of equal width.",
)
"""Sentences of the text."""
