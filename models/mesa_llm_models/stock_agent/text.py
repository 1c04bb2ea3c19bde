"""What traders have behind them, if they are drawn."""

LIVES = (
    "You are a dentist and look at prices between two patients.",
    "You retired last year and have time to read every report.",
    "You are saving for a house that you want to buy in two years.",
    "You inherited the shares, and your brother asks every week how they stand.",
    "You worked in a chemical plant for twenty years, and know the trade.",
    "You write software, and trust what you can see running.",
    "You lost money in the last crash, and told nobody.",
    "You teach mathematics, and like to be right.",
)
"""What a trader's life is like."""
