"""The settings of one streams group, which the broker reads at each heartbeat of a member."""

from __future__ import annotations

from dataclasses import dataclass

from hmb.coordinator.modern.settings import ModernGroupSettings

STANDBY_REPLICAS = "num.standby.replicas"  # the name under which a group stores this setting


@dataclass(frozen=True, slots=True)
class StreamsGroupSettings(ModernGroupSettings):
    """The values of a group's settings whose names begin with `streams.`. Times are in ms.

    - `standby_replicas`: how many standby copies each task with a state has.
    - `initial_delay`: how long an empty group waits for more members after its first member has joined.
    """

    standby_replicas: int
    initial_delay: int

    @property
    def of_assignment(self) -> dict[str, str]:
        """The settings that change the result of the assignor.

        If one of these settings changes, the group needs a new target assignment.
        """
        return {STANDBY_REPLICAS: str(self.standby_replicas)}
