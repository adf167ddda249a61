"""The routes, one module per noun.

To add a route, add its schema, catalog function, line in access.PERMISSIONS, and the route.
"""

from floe.api.routes import (
    changes,
    checks,
    datasets,
    drift,
    events,
    health,
    ingest,
    lineage,
    processes,
    registrations,
    runs,
    sessions,
    versions,
)

# In the order in which paths are matched: the most frequent ones first, and `/dataset/lineage`
# before `/dataset/{dataset_id}`.
ROUTERS = (
    ingest.router,
    lineage.router,
    drift.router,
    datasets.router,
    processes.router,
    runs.router,
    changes.router,
    versions.router,
    events.router,
    ingest.legacy_router,
    checks.router,
    registrations.router,
    sessions.router,
    sessions.outside,
    health.router,
    health.outside,
)
