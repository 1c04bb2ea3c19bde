"""Endpoints that speak OpenAI's chat completions: the client, requests, replies and errors."""
