"""One town that talks, bets and works, and a bridge that carries the news between the three."""
