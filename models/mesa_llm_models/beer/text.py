"""Who plays the beer game, if its players are drawn."""

TEMPERS = (
    "You would rather keep a few cases too many than let a customer go away empty-handed.",
    "Every case in the cellar looks like money lying about to you, and you keep your stock low.",
    "When orders jump you wait a week or two to see whether it lasts.",
    "When something changes you act at once, and fully.",
    "You write every delivery down, and add up what is still to come before you order.",
    "You trust your nose more than any list.",
)
"""How a player goes about orders."""

SITUATIONS = (
    "You took the business over from your father last spring.",
    "You have been in this trade for thirty years.",
    "This is your first season in the trade.",
    "Last summer you ran out in the hottest week, and people still talk about it.",
    "Last winter you had to pour away beer that had gone stale.",
    "You own the place together with your sister, who does the accounts.",
)
"""What a player has behind it."""
