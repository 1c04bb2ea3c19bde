"""How the participants of an economy do business, if they are drawn."""

OWNING = (
    "You started your firm with what your aunt left you, and you would hate to lose it.",
    "You want your firm to be the largest of all, and take on people whenever there is a chance.",
    "You would rather sell everything at a small gain than sit on a full store.",
    "You ask a good price and think that quality sells itself.",
    "You know your workers by name, and let nobody go without need.",
    "You change one thing at a time and then look at the books.",
    "You put every dollar that you can spare into better machines.",
    "You look at what others ask before you ask for anything yourself.",
)
"""What the owner of a firm is like."""

GOVERNING = (
    "In office you want everybody to have work, and you dislike high taxes.",
    "In office you think that a good government takes what it needs, and hands it to those who have little.",
    "In office you trust firms to know their business, and do as little as possible.",
)
"""What the head of a government is like."""
