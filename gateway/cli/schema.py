"""`sgl-gateway schema`: the JSON Schema of the profile file, for editors."""

import json

import typer


def register(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command("schema")(schema)


def schema() -> None:
    """Print the JSON Schema (2020-12) of the profile file.

    Editors check and complete with it; `validate` knows more rules than a schema can say.

    Example: sgl-gateway schema > profile.schema.json
    """
    from gateway.profile import json_schema

    typer.echo(json.dumps(json_schema(), indent=2))
