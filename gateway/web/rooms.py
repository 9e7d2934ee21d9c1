"""How much room each worker process has, where the others can see it.

One page of shared memory, made before the workers are forked. A worker writes its own place and
reads the others'; nothing is locked, since a value that is a moment old does no harm: it makes a
full worker wait a little, or not wait.
"""

import mmap
from typing import Final

_PLACES: Final = 2048
_BYTES_A_PLACE: Final = 2
_MOST: Final = 0xFFFF


class Rooms:
    """The free slots of all workers."""

    def __init__(self) -> None:
        shared = mmap.mmap(-1, _PLACES * _BYTES_A_PLACE)
        self._rooms = memoryview(shared).cast("H")

    def write(self, worker: int, room: int) -> None:
        """Notes the free slots of a worker; 0 when it ends.

        Args:
            worker: its number, as the server counts them.
            room: free slots.
        """
        self._rooms[worker % _PLACES] = min(max(room, 0), _MOST)

    def elsewhere(self, worker: int) -> int:
        """The free slots of all workers but this one."""
        return sum(self._rooms) - self._rooms[worker % _PLACES]


class Courtesy:
    """Decides whether a full worker leaves a waiting connection to the others.

    It does while one of them has room and they take what comes. Asked again and again about
    connections that wait, it tells a worker that is slow, under load, from one that is stuck by
    whether the room changes.

    Args:
        patience_s: how long the room may stay the same.
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._room = 0
        self._changed_s = 0.0
        self._asked_s = 0.0

    def leaves(self, room: int, now_s: float) -> bool:
        """Whether the connection is left to the others.

        Args:
            room: that they have.
            now_s: on the monotonic clock.
        """
        if room != self._room or now_s - self._asked_s > self._patience_s:
            self._room, self._changed_s = room, now_s
        self._asked_s = now_s
        return room > 0 and now_s - self._changed_s < self._patience_s
