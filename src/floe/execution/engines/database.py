"""Run statements or a stored procedure in a database, in one transaction."""

from floe.execution.databases import call_procedure, run_statements
from floe.execution.engines.contract import InPlace, Outputs, Work


class DatabaseEngine:
    """Runs the `statements` or the `procedure` of a process in its database."""

    def run(self, work: Work) -> Outputs:
        """Run them; the outputs are the tables that they filled."""
        site, spec = work.workspace.site, work.spec
        connection = str(spec.connection)
        if spec.procedure is not None:
            call_procedure(site, connection, spec.procedure, work.params, work.bound)
        else:
            texts = [site.read_text(statement) for statement in spec.statements]
            for index, rows in enumerate(run_statements(site, connection, texts, work.bound), 1):
                work.log.say(f"statement {index}: {rows if rows >= 0 else 'no'} rows")
        return {alias: InPlace(details={"in_place": True}) for alias in work.drafts}
