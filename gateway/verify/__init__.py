"""A profile as an acceptance suite: probes derived from its rules, put to a live endpoint.

    profile → plan (cases, each one request with what is expected of its answer) → run → report

The expectations come from the profile's own words, not from the code that enforces it, so that
the gateway can be judged by them like any other endpoint.
"""
