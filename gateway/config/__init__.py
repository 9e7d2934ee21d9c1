"""The settings file: the engines, how they are reached, and a few settings beside them."""

from gateway.config.loading import (
    NO_URL,
    RULES,
    WARNINGS,
    Config,
    ConfigError,
    check_config,
    load_config,
)

__all__ = ["NO_URL", "RULES", "WARNINGS", "Config", "ConfigError", "check_config", "load_config"]
