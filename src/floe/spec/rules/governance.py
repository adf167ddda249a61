"""Rules for governance: a policy speaks of classifications that there are."""

from collections.abc import Iterator

from floe.spec.findings import Problem
from floe.spec.nearby import suggest
from floe.spec.rules.draft import Draft


def check_governance(draft: Draft) -> Iterator[Problem]:
    """Find policies that would cover nothing: what they were to hide would be seen."""
    known = draft.spec.governance.classifications
    for name, policy in draft.spec.governance.policies.items():
        path = ("governance", "policies", name, "classifications")
        if not policy.classifications and draft.written(path[:-1]).get(path[-1]) is None:
            hint = f"Choose of: {', '.join(known)}."
            yield Problem(path, "is missing, so that the policy covers nothing", hint, at_key=True)
        for index, one in enumerate(policy.classifications):
            if one not in known:
                message = f"no classification named '{one}'"
                yield Problem((*path, index), message, suggest(one, known))
