"""The command line, `mesa-llm`."""
