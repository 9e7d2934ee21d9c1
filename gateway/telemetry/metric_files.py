"""The master's part in the metrics: the directory in which the processes share them.

It belongs to one master. One that the operator names is emptied of an earlier run's files at the
start; one that nobody names is made in memory, and removed at the end.
"""

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gateway.telemetry.metrics import Reloads

_MEMORY: Final = "/dev/shm"  # noqa: S108 - a folder of our own is made in it
_KINDS: Final = ("counter", "gauge", "histogram", "summary")


class MetricFiles:
    """The directory.

    Args:
        named: by the operator; None: a new one.
        keep: another master still writes to the named one (an upgrade of the program): its
            files stay.

    Raises:
        OSError: it cannot be made, or not be written to.
    """

    def __init__(self, named: str | None, *, keep: bool = False) -> None:
        self._own = named is None
        if named is None:
            memory = _MEMORY if os.access(_MEMORY, os.W_OK) else None
            named = tempfile.mkdtemp(prefix="sgl-gateway-metrics-", dir=memory)
        self.path: Final = named
        folder = Path(named)
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        if not keep:
            for file in folder.glob("*.db"):
                if file.name.startswith(_KINDS):
                    file.unlink()

    def remove(self) -> None:
        """Removes the directory, unless the operator named it."""
        if self._own:
            shutil.rmtree(self.path, ignore_errors=True)


class MasterMetrics:
    """What the master does for metrics; nothing before `open`.

    prometheus-client decides how it keeps values when it is first imported, by the variable that
    names the directory. So it is imported between `open` and `count_reloads`, not before.
    """

    def __init__(self) -> None:
        self._files: MetricFiles | None = None
        self._reloads: Reloads | None = None

    @property
    def is_open(self) -> bool:
        """Whether there is a directory."""
        return self._files is not None

    def open(self, named: str | None, *, keep: bool = False) -> str:
        """Makes the directory ready; see `MetricFiles`. Returns its path."""
        self._files = MetricFiles(named, keep=keep)
        return self._files.path

    def count_reloads(self) -> None:
        """Begins to count; the variable names the directory now."""
        from gateway.telemetry.metrics import Reloads  # noqa: PLC0415 - see the class

        self._reloads = Reloads()

    def note_reload(self, *, good: bool) -> None:
        """Counts a reload."""
        if self._reloads is not None:
            self._reloads.note(good=good)

    def worker_ended(self, pid: int) -> None:
        """Takes a dead worker's gauges out of the sums."""
        if self._files is not None:
            from prometheus_client.multiprocess import mark_process_dead  # noqa: PLC0415

            mark_process_dead(pid, self._files.path)  # type: ignore[no-untyped-call]

    def close(self) -> None:
        """Removes the directory, unless the operator named it."""
        if self._files is not None:
            self._files.remove()
            self._files = None
