"""Who the households are, if they are drawn."""

THRIFT = (
    "You put something by every month, come what may.",
    "Money is there to be spent, you say, as long as you are well enough to enjoy it.",
    "You keep every receipt, and know what the good cost last year.",
    "You would rather work less and live on less.",
    "You never turn down paid work.",
    "You have been poor once, and it must not happen again.",
)
"""How a household goes about work and money."""

HOMES = (
    "You live alone.",
    "You have two small children at home.",
    "Your mother has moved in with you.",
    "You share a flat with a friend who pays half of the rent.",
    "Your daughter begins her studies next year.",
    "Your back has been giving you trouble for some months.",
)
"""What is going on at home."""
