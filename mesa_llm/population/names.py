"""Names for drawn personas."""

from __future__ import annotations

GIVEN_NAMES: dict[str, tuple[str, ...]] = {
    "female": (
        *("Amara", "Birgit", "Carmen", "Dalia", "Edith", "Farah", "Greta", "Hana", "Ines", "Joy", "Keiko", "Lucia"),
        *("Mona", "Nadia", "Olga", "Priya", "Rosa", "Sofia", "Tilda", "Uma", "Vera", "Wanda", "Yara", "Zoe"),
    ),
    "male": (
        *("Adil", "Bruno", "Chidi", "Dario", "Emil", "Faisal", "Gustav", "Hugo", "Ivan", "Jamal", "Kenji", "Leon"),
        *("Mateo", "Nils", "Oscar", "Pavel", "Quentin", "Rafael", "Samir", "Tomas", "Umar", "Viktor", "Yusuf", "Zeno"),
    ),
    "other": (
        *("Alex", "Ariel", "Charlie", "Dana", "Eden", "Finley", "Kai", "Kim", "Lou", "Mika", "Noor", "Quinn"),
        *("Remy", "Robin", "Sam", "Sasha"),
    ),
}
"""Given names by gender."""

FAMILY_NAMES = (
    *("Abara", "Bauer", "Castillo", "Dahl", "Eriksen", "Ferreira", "Greene", "Haddad", "Ibarra", "Jansen", "Kowalski"),
    *("Lindqvist", "Moreau", "Nakamura", "Okafor", "Petrov", "Quigley", "Rossi", "Silva", "Tanaka", "Ueda", "Varga"),
    *("Walsh", "Yilmaz", "Zhou", "Achterberg", "Baptiste", "Cohen", "Duarte", "Eklund", "Farrow", "Gupta", "Holm"),
    *("Ivers", "Jovanovic", "Khan", "Lopez", "Mbeki", "Novak", "Olsen", "Park", "Reyes", "Schuster", "Torres"),
    *("Underhill", "Vogel", "Weber", "Zielinski"),
)
"""Family names."""
