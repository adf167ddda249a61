"""Storage formats, one module each. Users add their own through an entry point."""
