"""Impact: what depends on a dataset, who owns it, and which SLAs are at risk."""

from floe.catalog.database import Catalog
from floe.catalog.edges import consumes, declare_edges, produces
from floe.catalog.impact import DepthCount, TeamImpact, summarize_impact
from floe.catalog.tables import Sla
from tests.catalog.graph import NOON, dataset, process


def test_impact_lists_datasets_processes_teams_and_slas(catalog: Catalog) -> None:
    with catalog.writing() as session:
        due = Sla(name="report by seven", due="07:00", zone="Europe/London", created_at=NOON)
        fast = Sla(name="exposure in 20 minutes", sla_window_sec=1200, created_at=NOON)
        session.add_all([due, fast])
        session.flush()
        fx = dataset(
            session, "market.fx_rates", owner_team="Market Data", default_sla_id=due.sla_id
        )
        risk = {"owner_email": "risk@example.com"}
        exposure = dataset(session, "credit.exposure", owner_team="Credit Risk", **risk)
        report = dataset(session, "credit.report", default_sla_id=due.sla_id)
        daily = process(session, "floe/risk/daily", team="Credit Risk", sla_id=fast.sla_id, **risk)
        send = process(session, "AUTOSYS/NIGHT/send", team="Reporting")
        declare_edges(
            session,
            [
                consumes(fx, daily),
                produces(daily, exposure),
                consumes(exposure, send),
                produces(send, report),
            ],
            NOON,
        )
        impact = summarize_impact(session, fx)
    assert [node.name for node in impact.datasets] == ["credit.exposure", "credit.report"]
    assert [node.name for node in impact.processes] == ["daily", "send"]
    assert impact.by_depth == [
        DepthCount(1, 1, 1),
        DepthCount(2, 1, 1),
    ]
    assert impact.teams == [
        TeamImpact("Credit Risk", ("risk@example.com",), datasets=1, processes=1),
        TeamImpact("Reporting", (), datasets=0, processes=1),
    ]
    assert [(sla.name, sla.key) for sla in impact.slas] == [
        ("report by seven", "lake/credit.report"),
        ("exposure in 20 minutes", "floe/risk/daily"),
    ]
    assert not impact.truncated


def test_a_dataset_that_nobody_reads_has_no_impact(catalog: Catalog) -> None:
    with catalog.writing() as session:
        impact = summarize_impact(session, dataset(session, "market.fx_rates", owner_team="Market"))
    assert (impact.datasets, impact.processes, impact.teams, impact.slas) == ([], [], [], [])
