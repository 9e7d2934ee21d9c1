"""An engine without a model, which speaks SGLang's wire: for the first minute, and for tests."""
