"""The machine and the environment, looked at before anything fails."""
