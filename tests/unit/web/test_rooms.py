"""What worker processes know of each other's room."""

import os

import pytest

from gateway.web.rooms import Courtesy, Rooms


def test_room_is_seen_by_others():
    """A worker's own room is not elsewhere; another's is, until it is taken."""
    rooms = Rooms()
    rooms.write(1, 5)
    assert (rooms.elsewhere(1), rooms.elsewhere(2)) == (0, 5)
    rooms.write(2, 3)
    assert (rooms.elsewhere(1), rooms.elsewhere(2), rooms.elsewhere(3)) == (3, 5, 8)
    rooms.write(1, 0)
    assert rooms.elsewhere(2) == 0
    rooms.write(1, -3)
    assert rooms.elsewhere(2) == 0


def test_room_is_shared_with_forked_processes():
    """What a child writes, its parent reads."""
    rooms = Rooms()
    child = os.fork()
    if child == 0:
        rooms.write(7, 1)
        os._exit(0)
    os.waitpid(child, 0)
    assert rooms.elsewhere(8) == 1


@pytest.mark.parametrize(
    ("looks", "left"),
    [
        pytest.param([(0, 0.0)], [False], id="nobody has room"),
        pytest.param([(1, 0.0)], [True], id="somebody has"),
        pytest.param([(1, 0.0), (1, 0.14), (1, 0.15)], [True, True, False], id="and does not take"),
        pytest.param(
            [(9, 0.0), (9, 0.14), (8, 0.28), (7, 0.42), (7, 0.56), (7, 0.58)],
            [True, True, True, True, True, False],
            id="and takes slowly",
        ),
        pytest.param([(2, 0.0), (1, 0.1), (0, 0.2)], [True, True, False], id="and fills up"),
        pytest.param([(1, 0.0), (1, 9.0), (1, 9.1)], [True, True, True], id="another time"),
    ],
)
def test_a_connection_is_left_to_those_that_take_it(looks, left):
    """A full worker steps back while others have room, and take something every 0.15 s."""
    courtesy = Courtesy(0.15)
    assert [courtesy.leaves(room, now_s) for room, now_s in looks] == left
