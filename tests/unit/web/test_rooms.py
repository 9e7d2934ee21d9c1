"""What worker processes know of each other's room."""

import os

from gateway.web.rooms import Rooms


def test_room_is_seen_by_others():
    """A worker's own room is not elsewhere; another's is, until it is taken."""
    rooms = Rooms()
    rooms.write(1, 5)
    assert not rooms.elsewhere(1)
    assert rooms.elsewhere(2)
    rooms.write(1, 0)
    assert not rooms.elsewhere(2)
    rooms.write(1, -3)
    assert not rooms.elsewhere(2)


def test_room_is_shared_with_forked_processes():
    """What a child writes, its parent reads."""
    rooms = Rooms()
    child = os.fork()
    if child == 0:
        rooms.write(7, 1)
        os._exit(0)
    os.waitpid(child, 0)
    assert rooms.elsewhere(8)
