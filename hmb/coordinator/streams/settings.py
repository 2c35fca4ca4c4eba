"""The settings of one streams group, which the broker reads at each heartbeat of a member."""

from __future__ import annotations

from dataclasses import dataclass

from hmb.coordinator.modern.settings import ModernGroupSettings

STANDBY_REPLICAS = "num.standby.replicas"  # the name under which a group stores this setting


@dataclass(frozen=True, slots=True)
class StreamsGroupSettings(ModernGroupSettings):
    """The settings of a streams group. In Kafka, the names of these settings begin with `streams.`.

    - `standby_replicas`: the number of standby copies of each stateful task.
    - `initial_delay`: how long (ms) an empty group waits for more members after its first member has joined.
    """

    standby_replicas: int
    initial_delay: int

    @property
    def of_assignment(self) -> dict[str, str]:
        """The settings that change the result of the assignor.

        If one of these settings changes, the group needs a new target assignment.
        """
        return {STANDBY_REPLICAS: str(self.standby_replicas)}
