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

    def elsewhere(self, worker: int) -> bool:
        """Whether a worker other than this one has room."""
        own = self._rooms[worker % _PLACES]
        return sum(self._rooms) > own
