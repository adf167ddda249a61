"""The demos, each as a newcomer would type it."""
