"""Prompts: read from files, aligned across agents, put in order and rendered."""
