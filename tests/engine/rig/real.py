"""SGLang on a CPU with the tiny model, run as `real.py MODEL [SGLang's flags]`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import stand_ins

stand_ins.install()

COMMON = {
    "--host": "127.0.0.1",
    "--device": "cpu",
    "--attention-backend": "torch_native",
    "--sampling-backend": "pytorch",
    "--disable-cuda-graph": None,
    "--disable-overlap-schedule": None,
    "--enable-cache-report": None,
    "--log-level": "warning",
    "--mem-fraction-static": "0.1",
}
REAL = {
    "--served-model-name": "tiny",
    "--dtype": "float32",
    "--max-total-tokens": "16384",
    "--max-running-requests": "8",
    "--sleep-on-idle": None,
}
GENERATING = {
    "--tool-call-parser": "qwen",
    "--reasoning-parser": "qwen3",
    "--constrained-json-disable-any-whitespace": None,
}


def with_defaults(arguments, defaults):
    """The command line, with each default whose flag is not in it."""
    named = {argument.partition("=")[0] for argument in arguments}
    for flag, value in defaults.items():
        if flag not in named:
            arguments = [*arguments, flag] if value is None else [*arguments, flag, value]
    return arguments


def main():
    """Runs until it is told to end."""
    from sglang.srt.entrypoints.http_server import launch_server
    from sglang.srt.server_args import prepare_server_args

    model, *flags = sys.argv[1:]
    special = {"--model-path": model} | ({} if "--is-embedding" in flags else GENERATING)
    launch_server(prepare_server_args(with_defaults(flags, COMMON | REAL | special)))


if __name__ == "__main__":
    main()
