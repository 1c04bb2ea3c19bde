"""The beer distribution game: four positions of a supply chain, and orders that swing more the further up they are."""
