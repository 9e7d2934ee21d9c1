"""What the start says about a contract that an engine in Messages cannot be told."""

import pytest

from gateway.startup import load_launch, unsayable_pins

SERVERS = """
model_id: m
providers:
  sgl:
    keys:
      - name: a
        sgl_key_config: {url: "http://127.0.0.1:1"}
        use_anthropic_endpoints: %s
        aliases:
          other: {model_id: m, use_anthropic_endpoints: %s}
"""

PROFILES = {
    "neutral values": ("sampling: {params: {n: 1, frequency_penalty: 0, top_p: 0.5}}", ()),
    "exact values": ("sampling: {params: {min_p: 0.1, n: 2}}", ("min_p", "n")),
    "a band writes nothing": ("sampling: {params: {min_p: {min: 0, max: 1}}}", ()),
    "rules": ("params: {seed: {default: 1}, logprobs: {pin: true}}", ("seed", "logprobs")),
}


@pytest.mark.parametrize(("profile", "unsayable"), PROFILES.values(), ids=PROFILES)
@pytest.mark.parametrize(
    ("key", "alias"), [("true", "false"), ("false", "true"), ("false", "false")]
)
def test_unsayable_pins(tmp_path, profile, unsayable, key, alias):
    """Fields that are written in and that Messages has no words for, where a server speaks it."""
    config, path = tmp_path / "config.yaml", tmp_path / "profile.yaml"
    config.write_text(SERVERS % (key, alias), encoding="utf-8")
    path.write_text(profile, encoding="utf-8")
    launch = load_launch({"config": str(config), "api_profile_file": str(path)}, {})
    assert unsayable_pins(launch) == (unsayable if "true" in {key, alias} else ())
