"""The profile's `protocols`: a route that is off is not there."""

from gateway.errors import NOT_FOUND, GatewayError
from gateway.profile import Profile
from gateway.routes import Route


def require_on(profile: Profile, route: Route) -> None:
    """Lets requests of a route through unless the profile turns its protocol off.

    Raises:
        GatewayError: 404, as of a path that nothing answers to.
    """
    if route.protocol in profile.protocols_off:
        raise GatewayError(NOT_FOUND, f"There is nothing at {route.path}.")
