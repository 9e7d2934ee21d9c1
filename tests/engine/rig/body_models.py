"""Reads request bodies with SGLang's request models, run as `body_models.py FOLDER VERSION…`.

A line in is `{"version", "path", "body"}`, the body as text; a line out is `{"refused": why}` or
`{"refused": null, "unknown": [the keys that the model does not declare, dotted]}`. The models'
files are loaded alone: SGLang's packages, which would import torch, are empty here.
"""

import importlib
import importlib.util
import json
import sys
import types
import warnings
from pathlib import Path

import orjson
from pydantic import BaseModel, ValidationError

OPENAI, ANTHROPIC = (
    f"sglang.srt.entrypoints.{dialect}.protocol" for dialect in ("openai", "anthropic")
)
MODELS = {
    "/v1/chat/completions": (OPENAI, "ChatCompletionRequest"),
    "/v1/completions": (OPENAI, "CompletionRequest"),
    "/v1/embeddings": (OPENAI, "EmbeddingRequest"),
    "/v1/responses": (OPENAI, "ResponsesRequest"),
    "/v1/messages": (ANTHROPIC, "AnthropicMessagesRequest"),
    "/v1/messages/count_tokens": (ANTHROPIC, "AnthropicCountTokensRequest"),
}
READ_UNDECLARED = {("/v1/chat/completions", "reasoning")}
"""Keys that a model reads before it looks at its fields."""


def _package(name, folder=None):
    package = types.ModuleType(name)
    package.__path__ = [str(folder)] if folder else []
    sys.modules[name] = package
    return package


def load_models(folder):
    """The request models of one version, by path."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "sglang"]:
        del sys.modules[name]
    for name in (
        "",
        ".srt",
        ".srt.entrypoints",
        ".srt.entrypoints.openai",
        ".srt.entrypoints.anthropic",
    ):
        _package(f"sglang{name}", folder.joinpath("sglang", *name.split(".")))
    _package("sglang.utils").convert_json_schema_to_str = lambda schema: (
        schema if isinstance(schema, str) else json.dumps(schema)
    )
    return {
        path: getattr(importlib.import_module(module), name)
        for path, (module, name) in MODELS.items()
    }


def load_grammar_models():
    """xgrammar's models without its package, which would import torch."""
    found = importlib.util.find_spec("xgrammar").submodule_search_locations[0]
    package = _package("xgrammar", found)
    package.StructuralTag = importlib.import_module("xgrammar.structural_tag").StructuralTag


def undeclared(model, raw, at=""):
    """The keys of `raw` that `model` does not know, at any depth."""
    if isinstance(model, BaseModel) and isinstance(raw, dict):
        fields = type(model).model_fields
        names = {field.alias or name: name for name, field in fields.items()}
        takes_all = model.model_config.get("extra") == "allow"
        for key, value in raw.items():
            name = names.get(key, key if key in fields else None)
            if name is not None:
                yield from undeclared(getattr(model, name), value, f"{at}{key}.")
            elif not takes_all:
                yield f"{at}{key}"
    elif isinstance(model, list | tuple) and isinstance(raw, list):
        for index, (part, of) in enumerate(zip(model, raw, strict=False)):
            yield from undeclared(part, of, f"{at}{index}.")


def judge(models, path, body):
    """What SGLang's route would make of a body."""
    try:
        model = models[path].model_validate(orjson.loads(body))
    except ValidationError as error:
        return {"refused": str(error)}
    except Exception as error:  # noqa: BLE001 - a validator that falls over: the engine's 500
        return {"refused": f"{type(error).__name__}: {error}"}
    found = [
        key for key in undeclared(model, orjson.loads(body)) if (path, key) not in READ_UNDECLARED
    ]
    return {"refused": None, "unknown": found}


def main():
    """Answers lines until there are no more."""
    warnings.simplefilter("ignore")
    folder, *versions = sys.argv[1:]
    load_grammar_models()
    models = {version: load_models(Path(folder) / version) for version in versions}
    for line in sys.stdin:
        asked = json.loads(line)
        verdict = judge(models[asked["version"]], asked["path"], asked["body"])
        sys.stdout.write(json.dumps(verdict) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
