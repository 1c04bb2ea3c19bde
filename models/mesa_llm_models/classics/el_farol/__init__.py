"""Arthur's El Farol problem: people who go out only if few others do."""
