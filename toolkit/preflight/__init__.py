"""A training command, held against a recipe and what an acceptance run needs, before it is started."""
