"""Loads the plugins that every folder of tests shares."""

import sys
from pathlib import Path

# Appended: nothing that is installed may be shadowed by a folder of tests.
sys.path.append(str(Path(__file__).parent))

pytest_plugins = ["scripted"]
