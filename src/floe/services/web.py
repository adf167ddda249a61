"""`python -m floe.services.web PORT`: Dagster's web interface behind the guard, on loopback."""

import sys

from floe.api.gate import TokenGate
from floe.api.hosts import Hosts
from floe.api.server import listen, serve
from floe.catalog import open_ready_catalog
from floe.catalog.sessions import Sessions
from floe.execution.workspace import catalog_address, load_site
from floe.orchestration.home import home_of, read_web_secret, workspace_file
from floe.orchestration.webserver import open_web_app
from floe.services.guard import Guard
from floe.services.ports import HOST
from floe.settings import find_project


def main(port: int) -> None:
    """Serve the project in FLOE_PROJECT until told to stop."""
    site = load_site(find_project())
    listener = listen(HOST, port, login=True)
    hosts = Hosts.of(site.platform.orchestrator.url)
    catalog = open_ready_catalog(catalog_address(site))
    sessions = Sessions(catalog)
    try:
        with listener, open_web_app(workspace_file(site)) as app:
            gate = TokenGate(sessions, hosts=hosts)
            serve(
                Guard(app, gate, hosts, read_web_secret(home_of(site))), listener, websockets=True
            )
    finally:
        sessions.close()
        catalog.close()


if __name__ == "__main__":
    main(int(sys.argv[1]))
