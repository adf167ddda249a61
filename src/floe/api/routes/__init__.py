"""The routes, one module per noun. To add one: its shape, its catalog function, its line in
access.PERMISSIONS, then the route itself.
"""

from floe.api.routes import (
    changes,
    checks,
    datasets,
    drift,
    events,
    health,
    ingest,
    legacy,
    lineage,
    processes,
    registrations,
    runs,
    sessions,
    versions,
)

# In the order in which a path is looked for: what is asked most comes first, and the lineage of a
# thing by its name (`/dataset/lineage`) before the thing by its number.
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
    legacy.router,
    checks.router,
    registrations.router,
    sessions.router,
    sessions.outside,
    health.router,
    health.outside,
)
