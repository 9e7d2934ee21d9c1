"""What is known of a server's health: learnt from requests, and from asking where that is due.

Everything that decides whether a server is drawn is here; nothing here knows sockets or locks.

    in service --3 failures in a row--> out --cool-down over, and ready--> on trial
    on trial   --it answers----------> in service
    on trial   --it fails------------> out, with a longer cool-down

What happened to a request, as the caller tells it:

| | counts as |
|---|---|
| an answer of any status below 500, the two below left aside | `ANSWERED` for 2xx, else `NEUTRAL` |
| 503, 429 | `BUSY`: it is passed over for a moment where others can take the request |
| no connection, a connection that broke, no answer in time, any other 5xx | `FAILED` |

Readiness is asked of servers that are out when their cool-down is over (so that a client's
request is the trial only of a server that says it is there), and now and then of servers in
service: an engine that shuts down still takes requests, and says so nowhere else. One that is not
ready is passed over as a busy one is.

State is of one process: each finds out for itself, with three requests of its own.
"""

import math
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

FAILURES_TO_LEAVE: Final = 3
"""Requests in a row that must fail before a server is left out."""

FIRST_COOL_DOWN_S: Final = 1.0
LAST_COOL_DOWN_S: Final = 5.0
"""How long a server is left out: doubled with each failed trial, and kept short, since a lone
server's clients wait for the end of it."""

BUSY_S: Final = 1.0
"""How long a busy server is passed over, where it names no time of its own."""

LONGEST_BUSY_S: Final = 5.0
"""The most that a server's own `retry-after` counts for: it speaks of one request's chances."""

READY_EVERY_S: Final = 2.0
"""How often a server in service is asked whether it is ready, while it gets requests."""


class Outcome(Enum):
    """What reaching a server came to."""

    ANSWERED = auto()
    NEUTRAL = auto()
    BUSY = auto()
    FAILED = auto()


@dataclass(slots=True)
class Health:
    """What is known of one server. Times are monotonic seconds.

    Attributes:
        failures: in a row.
        out_until_s: the end of the cool-down, or of the wait for the outcome of a trial.
        cool_down_s: the length of the next one.
        trial: a request is out to see whether the server is back.
        says_ready: it said so since it was left out.
        busy_until_s: it is passed over until then, where others are there.
        unready: when it was asked last, it was not ready, or said nothing.
        used: it got a request since it was asked last.
        ask_at_s: when it is asked next, should that be due.
    """

    failures: int = 0
    out_until_s: float = -math.inf
    cool_down_s: float = FIRST_COOL_DOWN_S
    trial: bool = False
    says_ready: bool = False
    busy_until_s: float = -math.inf
    unready: bool = False
    used: bool = False
    ask_at_s: float = -math.inf

    @property
    def is_out(self) -> bool:
        """Whether it has left service, on trial or not."""
        return self.failures >= FAILURES_TO_LEAVE

    def can_be_drawn(self, now_s: float, *, asked: bool) -> bool:
        """Whether a request may go to it.

        Args:
            now_s: the time.
            asked: somebody asks servers that are out whether they are ready.
        """
        if not self.is_out:
            return True
        return now_s >= self.out_until_s and (self.says_ready or not asked)

    def is_passed_over(self, now_s: float) -> bool:
        """Whether others are better asked."""
        return self.unready or now_s < self.busy_until_s

    def draw(self, now_s: float) -> None:
        """A request goes to it."""
        if not self.used:
            self.used = True
            self.ask_at_s = now_s + READY_EVERY_S
        if self.is_out:
            # The others wait for the outcome or, if there is none, for the next trial.
            self.trial = True
            self.out_until_s = now_s + self.cool_down_s

    def note(self, outcome: Outcome, now_s: float, busy_s: float = BUSY_S) -> None:
        """A request to it came to something.

        Args:
            outcome: what.
            now_s: the time.
            busy_s: how long a busy server asks to be left alone.
        """
        if outcome is Outcome.FAILED:
            self._fail(now_s)
        elif outcome is not Outcome.NEUTRAL or self.trial:
            self._recover()
        if outcome is Outcome.BUSY:
            self.busy_until_s = now_s + min(busy_s, LONGEST_BUSY_S)

    def note_ready(self, ready: bool | None, now_s: float) -> None:
        """It was asked whether it is ready.

        Args:
            ready: what it said; None where it said nothing.
            now_s: the time.
        """
        self.used = False
        self.ask_at_s = now_s + READY_EVERY_S
        self.unready = not ready
        if self.is_out and not self.trial:
            self.says_ready = bool(ready)
            if not ready:
                self._cool_down_longer(now_s)
        elif ready is None:
            self._fail(now_s)

    def ask_at(self) -> float | None:
        """When it is to be asked next whether it is ready; None: there is no need."""
        if self.is_out:
            return None if self.says_ready else self.out_until_s
        return self.ask_at_s if self.used or self.unready else None

    def _recover(self) -> None:
        self.failures = 0
        self.trial = self.says_ready = False
        self.out_until_s = -math.inf
        self.cool_down_s = FIRST_COOL_DOWN_S

    def _fail(self, now_s: float) -> None:
        self.failures += 1
        if self.trial:
            self.trial = self.says_ready = False
            self._cool_down_longer(now_s)
        elif self.failures == FAILURES_TO_LEAVE:
            self.says_ready = False
            self.out_until_s = now_s + self.cool_down_s
        # Else not yet, or a late failure of a request from before.

    def _cool_down_longer(self, now_s: float) -> None:
        self.cool_down_s = min(self.cool_down_s * 2, LAST_COOL_DOWN_S)
        self.out_until_s = now_s + self.cool_down_s
