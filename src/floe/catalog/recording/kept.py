"""Which events of a group are news, asked of the store only where it matters."""

from functools import cached_property

from floe.catalog.recording.claims import EventClaim
from floe.catalog.recording.scope import Recording
from floe.catalog.stores.merging import Answer


class Kept:
    """What the store says of the events that it was given."""

    def __init__(self, recording: Recording, answer: Answer) -> None:
        self._recording, self._answer = recording, answer

    @cached_property
    def _received(self) -> dict[str, object]:
        """When events were first received: those that were new, or were history until now."""
        as_moment = self._recording.merging.as_moment
        return {event_hash: as_moment(at) for event_hash, at in self._answer.fetchall()}

    def is_new(self, claim: EventClaim) -> bool:
        """Whether an event was not there before."""
        return self._received.get(claim.hash) == claim.received_at

    def is_news(self, claim: EventClaim) -> bool:
        """Whether nobody was told of an event before: it was not there, or was history only."""
        return not claim.historical and claim.hash in self._received
