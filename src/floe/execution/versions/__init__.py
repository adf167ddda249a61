"""Versions of floe's own making: reserved, written unseen, checked, published; and repaired."""
