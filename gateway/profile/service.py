"""Holds the profile of a process, and swaps in another one."""

from collections.abc import Callable

from gateway.profile.loading import Loaded
from gateway.profile.rules import Profile
from gateway.profile.selection import Choice


class ProfileService:
    """The profile in effect. Readers in other threads see the old one or the new one, whole.

    Args:
        load: chooses and loads; called at once, and at each reload.

    Raises:
        ProfileError: the first load fails.
    """

    def __init__(self, load: Callable[[], Choice]) -> None:
        self._load = load
        self._choice = load()

    @property
    def choice(self) -> Choice:
        """The profile in effect and why it was chosen."""
        return self._choice

    @property
    def current(self) -> Loaded:
        """The profile in effect, with its tree and origins."""
        return self._choice.loaded

    @property
    def profile(self) -> Profile:
        """What is enforced."""
        return self._choice.loaded.profile

    def reload(self) -> Choice:
        """Loads again; requests that begin after it see the new profile.

        Raises:
            ProfileError: the new one is broken; the old one stays in force.
        """
        choice = self._load()
        self._choice = choice
        return choice
