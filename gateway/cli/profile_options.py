"""The options that choose a profile, for every command that works on the one in effect."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from gateway.profile import Choice

ProfileFile = Annotated[
    str | None,
    typer.Option("--api-profile-file", metavar="PATH", help="A profile file.", show_default=False),
]
ProfileName = Annotated[
    str | None,
    typer.Option("--api-profile", metavar="NAME", help="A preset.", show_default=False),
]
OverrideParams = Annotated[
    str | None,
    typer.Option(
        "--override-sampling-params",
        metavar="JSON",
        help="An object that replaces the profile's whole sampling section.",
        show_default=False,
    ),
]
OverrideConflict = Annotated[
    str | None,
    typer.Option(
        "--sampling-param-conflict",
        metavar="reject|allow",
        help="The conflict mode that goes with --override-sampling-params.",
        show_default=False,
    ),
]


def load_choice(
    api_profile_file: str | None,
    api_profile: str | None,
    override_sampling_params: str | None,
    sampling_param_conflict: str | None,
) -> "Choice":
    """The profile in effect: as `serve` with the same flags, in the same environment, chooses.

    Raises:
        SettingsError: a value cannot be used.
        ProfileError: the profile, or the override, cannot be used.
    """
    from gateway import startup
    from gateway.settings import load_settings

    settings = load_settings(
        {
            "api_profile_file": api_profile_file,
            "api_profile": api_profile,
            "override_sampling_params": override_sampling_params,
            "sampling_param_conflict": sampling_param_conflict,
        },
        read_file=False,
    )
    return startup.load_choice(settings)
