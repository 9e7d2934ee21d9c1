"""Real SGLang on a CPU, for tests: its installation, its processes, and what watches its wire.

    install      two homes, built where they are missing: an engine, and SGLang's request models
    tiny_model   a random model that loads in a second, with a tokenizer of its own
    stand_ins    empty modules for what needs a GPU
    real         SGLang as it is, on that model
    twin         SGLang without its scheduler: a test says in the prompt what is answered
    processes    starting and stopping these, and the log of what was aborted
    wire         a proxy before an engine that records every request body
    bodies       these bodies, held against SGLang's own request models

`tiny_model`, `stand_ins`, `real`, `twin` and `body_models` run in a home's interpreter.
"""
