"""The enforcement of a profile on a request: pure, from a request to edits or a rejection."""

from gateway.contract.apply import decide, enforce
from gateway.contract.images import count_images
from gateway.contract.parameters import renames_reasoning
from gateway.contract.verdict import Change, Decision, Verdict

__all__ = [
    "Change",
    "Decision",
    "Verdict",
    "count_images",
    "decide",
    "enforce",
    "renames_reasoning",
]
