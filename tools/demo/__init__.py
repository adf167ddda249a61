"""Run the demos with the commands that a new user would type."""
