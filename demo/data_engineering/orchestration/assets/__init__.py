"""The shop's Python assets, one module for each layer."""
