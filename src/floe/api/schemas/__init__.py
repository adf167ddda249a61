"""The shapes of the API: what it takes and gives, one module per noun.

Fields have the names of the catalog's columns, which docs/reference/catalog.md explains. What the
catalog has as a frozen dataclass already is answered as it is.
"""
