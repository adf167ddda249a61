"""Formats: one file each behind one contract. A user's own registers by entry point."""
