"""A policy that covers nothing is found, before what it was to hide is seen."""

from collections.abc import Callable

Find = Callable[..., list[str]]


def test_a_policy_names_classifications_that_there_are(find: Find) -> None:
    assert find(
        """
        name: x
        governance:
          classifications: [public, personal]
          policies:
            people: {action: mask, classifications: [personnal]}
        """
    ) == [
        "floe.yaml:6: governance.policies.people.classifications[0]: no classification named "
        "'personnal'. Did you mean 'personal'?"
    ]


def test_a_policy_says_what_it_covers(find: Find) -> None:
    (found,) = find("name: x\ngovernance:\n  policies:\n    people: {action: mask}\n")
    assert "governance.policies.people.classifications: is missing" in found
    assert "public, internal" in found
