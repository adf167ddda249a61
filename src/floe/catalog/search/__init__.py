"""Find datasets by the words in their names, tags, owners, columns and descriptions."""

from floe.catalog.search.documents import index_datasets, reindex_datasets
from floe.catalog.search.facets import FacetCount
from floe.catalog.search.pages import (
    CursorError,
    DatasetHit,
    SearchFilters,
    SearchPage,
    search_datasets,
)

__all__ = [
    "CursorError",
    "DatasetHit",
    "FacetCount",
    "SearchFilters",
    "SearchPage",
    "index_datasets",
    "reindex_datasets",
    "search_datasets",
]
