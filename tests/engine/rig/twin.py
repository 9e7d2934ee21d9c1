"""SGLang without its scheduler, run as `twin.py MODEL [SGLang's flags]`.

HTTP layer, request checks, chat template, tokenizer, parsers, detokenizer, error bodies, streams
and aborts are SGLang's own; what a model would say stands in the prompt. A script is a JSON object
between `<<` and `>>`; the last one of the last user turn is played:

    say: TEXT            the answer
    think: TEXT          thinking before it
    calls: [[NAME, ARGUMENTS]…]  tool calls after it; arguments that are a text are written raw
    words: N             an answer of N words instead
    raw: TEXT            exactly this, thinking and calls included
    first_ms: N          the wait for the first token
    token_ms: N          the wait for each further token
    hang: true           no token ever
    fail: {status, message, after}  the scheduler aborts after so many tokens with this status;
                         without a status the generation merely ends, as after /abort_request
    refuse: {status, message}  the scheduler does not take the request in (a full queue)
    die_after: N         the scheduler dies after N tokens

Without a script there is a default answer; a schema is answered with an object, a forced call
with a call of the first tool. Budgets, stop sequences, `n` and logprobs are honoured. Each event
of a request is a line of JSON on standard error: `begin`, `end`, `abort`.
"""

import array
import json
import os
import re
import signal
import sys
import time
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import stand_ins

stand_ins.install()

from real import COMMON, GENERATING, with_defaults

DEFAULT_ANSWER = "The sky is blue. Two plus two is four."
LOGPROB = -0.25
EMBEDDING_SIZE = 64
IDLE_MS = 200


@dataclass
class Generation:
    """One request while it is answered.

    Attributes:
        request: as SGLang's tokenizer manager sent it.
        tokens: of the whole answer.
        at_s: when the next token is due; None: never.
        reason: why it has ended, in the scheduler's form.
    """

    request: object
    script: dict
    tokens: list
    at_s: float | None
    said: list = field(default_factory=list)
    told: int = 0
    thought: int = 0
    thinks: bool = False
    cached: int = 0
    reason: dict | None = None


class Speaker:
    """From a request to the tokens of its answer."""

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer
        self.end = tokenizer.convert_tokens_to_ids("<|im_end|>")
        self.think = tokenizer.convert_tokens_to_ids("<think>")
        self.thought = tokenizer.convert_tokens_to_ids("</think>")

    def begin(self, request):
        """The generation that the prompt asks for."""
        prompt = self.tokenizer.decode(list(request.input_ids or []))
        turn = prompt.rpartition("<|im_start|>user\n")[2].partition("<|im_end|>")[0]
        scripts = re.findall(r"<<(\{.*?\})>>", turn, re.DOTALL)
        script = json.loads(scripts[-1]) if scripts else {}
        tokens = self.tokenizer.encode(self.answer(request, script), add_special_tokens=False)
        due = None if script.get("hang") else time.monotonic() + script.get("first_ms", 0) / 1000
        return Generation(request, script, [*tokens, self.end], due)

    def answer(self, request, script):
        """The text of the answer, with its marks of thinking and calls."""
        if "raw" in script:
            return script["raw"]
        text = ""
        if "think" in script:
            text = f"<think>\n{script['think']}\n</think>\n\n"
        elif request.require_reasoning:
            text = "<think></think>"
        if "words" in script:
            text += " ".join(f"word{number}" for number in range(script["words"]))
        elif "say" in script:
            text += script["say"]
        elif request.sampling_params.json_schema:
            text += '{"ok": true}'
        elif "calls" not in script:
            text += DEFAULT_ANSWER
        for name, arguments in script.get("calls", ()):
            given = arguments if isinstance(arguments, str) else json.dumps(arguments)
            call = f'{{"name": {json.dumps(name)}, "arguments": {given}}}'
            text += f"\n<tool_call>\n{call}\n</tool_call>"
        return text

    def step(self, one):
        """Says one token more, or ends."""
        wanted = one.request.sampling_params
        fail = one.script.get("fail")
        if fail and len(one.said) >= fail.get("after", 0):
            one.reason = aborted(fail.get("message", "aborted by script"), fail.get("status"))
            return
        if len(one.said) >= one.script.get("die_after", sys.maxsize):
            os._exit(3)
        token = one.tokens[len(one.said) % len(one.tokens)]
        one.said.append(token)
        one.thinks = one.thinks or token == self.think
        one.thought += one.thinks
        one.thinks = one.thinks and token != self.thought
        if not wanted.ignore_eos and token in {self.end, *(wanted.stop_token_ids or ())}:
            one.reason = {"type": "stop", "matched": token}
        elif hit := self.stop_text(one.said, wanted.stop_strs):
            one.reason = {"type": "stop", "matched": hit}
        elif len(one.said) >= (wanted.max_new_tokens or sys.maxsize):
            one.reason = {"type": "length", "length": wanted.max_new_tokens}

    def stop_text(self, said, stops):
        """The stop sequence that the text has come to, if any."""
        if not stops:
            return None
        tail = self.tokenizer.decode(said[-64:])
        return next(
            (stop for stop in ([stops] if isinstance(stops, str) else stops) if stop in tail), None
        )


def aborted(message, status):
    """The finish reason of an abort."""
    status = HTTPStatus(status) if status else None
    return {"type": "abort", "message": message, "status_code": status, "err_type": None}


def note(event, **fields):
    """A line of the log."""
    sys.stderr.write(json.dumps({"event": event, **fields}) + "\n")
    sys.stderr.flush()


class Twin:
    """In the scheduler's place: takes requests from SGLang's tokenizer manager, sends tokens on."""

    def __init__(self, server_args, port_args):
        import zmq
        from sglang.srt.managers import io_struct
        from sglang.srt.utils.network import get_zmq_socket
        from transformers import AutoTokenizer

        self.io = io_struct
        self.nothing_there = zmq.ZMQError
        self.no_wait = zmq.NOBLOCK
        context = zmq.Context(2)
        self.inbox = get_zmq_socket(context, zmq.PULL, port_args.scheduler_input_ipc_name, False)
        self.detokenizer = get_zmq_socket(context, zmq.PUSH, port_args.detokenizer_ipc_name, False)
        self.manager = get_zmq_socket(context, zmq.PUSH, port_args.tokenizer_ipc_name, False)
        self.speaker = Speaker(AutoTokenizer.from_pretrained(server_args.model_path))
        self.running = {}
        self.known_prompts = {}

    def run(self):
        """Until the process that started it is gone."""
        parent = os.getppid()
        while os.getppid() == parent:
            if self.inbox.poll(self.wait_ms()):
                self.read()
            now = time.monotonic()
            for one in [one for one in self.running.values() if one.at_s and one.at_s <= now]:
                self.speaker.step(one)
                one.at_s = now + one.script.get("token_ms", 0) / 1000
                if one.reason or one.request.stream:
                    self.tell(one)

    def wait_ms(self):
        """Until the next token is due, at most `IDLE_MS`."""
        due = [one.at_s for one in self.running.values() if one.at_s]
        left = (min(due) - time.monotonic()) * 1000 if due else IDLE_MS
        return max(0, min(IDLE_MS, left))

    def read(self):
        """Takes in everything that has arrived."""
        while True:
            try:
                message = self.io.sock_recv(self.inbox, self.no_wait)
            except self.nothing_there:
                return
            self.handle(message)

    def handle(self, message):
        """Acts on one message of the tokenizer manager."""
        io = self.io
        match type(message).__name__:
            case "BatchTokenizedGenerateReqInput" | "BatchTokenizedEmbeddingReqInput":
                for each in message.batch:
                    self.handle(each)
            case "TokenizedGenerateReqInput":
                message.unwrap_pickle_fields()
                self.begin(message)
            case "TokenizedEmbeddingReqInput":
                self.embed(message)
            case "AbortReq":
                self.abort(message)
            case "GetInternalStateReq":
                state = io.GetInternalStateReqOutput(internal_state={}, rid=message.rid)
                io.sock_send(self.manager, state)
            case "FlushCacheReqInput":
                io.sock_send(self.manager, io.FlushCacheReqOutput(success=True, rid=message.rid))
            case "ShutdownReq":
                sys.exit(0)
            case other:
                note("unread", kind=other)

    def begin(self, request):
        """A new generation, or its refusal straight to the tokenizer manager."""
        one = self.speaker.begin(request)
        note("begin", rid=request.rid, prompt_tokens=len(request.input_ids or []))
        refuse = one.script.get("refuse")
        if refuse is not None:
            reason = aborted(
                refuse.get("message", "The request queue is full."), refuse.get("status", 503)
            )
            del reason["err_type"]
            refusal = self.io.AbortReq(
                rid=request.rid, http_worker_ipc=request.http_worker_ipc, finished_reason=reason
            )
            self.io.sock_send(self.manager, refusal)
            return
        prompt = tuple(request.input_ids or ())
        one.cached = max(0, min(self.known_prompts.get(prompt, 0), len(prompt) - 1))
        self.known_prompts[prompt] = len(prompt)
        self.running[request.rid] = one

    def abort(self, message):
        """Ends what the tokenizer manager gave up, since its client has left."""
        for rid in list(self.running):
            if message.abort_all or (message.rid and rid.startswith(message.rid)):
                one = self.running[rid]
                note("abort", rid=rid, tokens=len(one.said))
                one.reason = aborted("Abort in running", None)
                self.tell(one)

    def tell(self, one):
        """Sends the tokens that are new, and the end where it has come."""
        request, new = one.request, one.said[one.told :]
        one.told = len(one.said)
        if one.reason:
            del self.running[request.rid]
            note("end", rid=request.rid, tokens=len(one.said), reason=one.reason["type"])
        wanted, top = request.sampling_params, request.top_logprobs_num
        logprobs = dict.fromkeys(_LOGPROB_FIELDS)
        if request.return_logprob:
            tops = [[LOGPROB] * top for _ in new], [[token] * top for token in new]
            logprobs = {field: [[]] for field in _LOGPROB_FIELDS} | {
                "output_token_logprobs_val": [[LOGPROB] * len(new)],
                "output_token_logprobs_idx": [new],
                "output_top_logprobs_val": [tops[0] if top else []],
                "output_top_logprobs_idx": [tops[1] if top else []],
                "output_token_ids_logprobs_val": None,
                "output_token_ids_logprobs_idx": None,
            }
        batch = self.io.BatchTokenIDOutput(
            rids=[request.rid],
            http_worker_ipcs=[request.http_worker_ipc],
            finished_reasons=[one.reason],
            decoded_texts=[""],
            decode_ids=[array.array("q", new)],
            read_offsets=[0],
            output_ids=[array.array("q", new)],
            skip_special_tokens=[wanted.skip_special_tokens],
            spaces_between_special_tokens=[wanted.spaces_between_special_tokens],
            no_stop_trim=[wanted.no_stop_trim],
            prompt_tokens=[len(request.input_ids or [])],
            reasoning_tokens=[one.thought],
            completion_tokens=[len(one.said)],
            cached_tokens=[one.cached],
            cached_tokens_details=[None],
            retraction_counts=[0],
            dp_ranks=[None],
            weight_versions=[None],
            **logprobs,
            **dict.fromkeys(_ABSENT_FIELDS),
        )
        self.io.sock_send(self.detokenizer, batch)

    def embed(self, request):
        """A vector that depends on the tokens alone."""
        tokens = list(request.input_ids or [])
        vector = [((sum(tokens) * (place + 3)) % 97 + 1) / 97 for place in range(EMBEDDING_SIZE)]
        vector = vector[: getattr(request, "dimensions", None) or EMBEDDING_SIZE]
        length = sum(value * value for value in vector) ** 0.5
        self.io.sock_send(
            self.detokenizer,
            self.io.BatchEmbeddingOutput(
                rids=[request.rid],
                http_worker_ipcs=[request.http_worker_ipc],
                finished_reasons=[{"type": "stop", "matched": None}],
                embeddings=[[value / length for value in vector]],
                prompt_tokens=[len(tokens)],
                cached_tokens=[0],
                placeholder_tokens_idx=None,
                placeholder_tokens_val=None,
                retraction_counts=[0],
            ),
        )


_LOGPROB_FIELDS = tuple(
    f"{part}_{kind}"
    for part in (
        "input_token_logprobs",
        "input_top_logprobs",
        "input_token_ids_logprobs",
        "output_token_logprobs",
        "output_top_logprobs",
        "output_token_ids_logprobs",
    )
    for kind in ("val", "idx")
)
_ABSENT_FIELDS = (
    "output_token_entropy_val",
    "output_token_sampling_mask",
    "output_hidden_states",
    "routed_experts",
    "indexer_topk",
    "placeholder_tokens_idx",
    "placeholder_tokens_val",
)


def run_twin(server_args, port_args, gpu_id, tp_rank, pp_rank, dp_rank, pipe, *rest, **more):
    """The process that SGLang takes for its scheduler."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    twin = Twin(server_args, port_args)
    pipe.send(
        {
            "status": "ready",
            "max_total_num_tokens": 65536,
            "max_req_input_len": server_args.context_length - 6,
            "startup_time": {},
            "hicache_object_layout": None,
        }
    )
    twin.run()


TWIN = {
    "--served-model-name": "twin",
    "--grammar-backend": "none",
    "--context-length": "8192",
}


def main():
    """Runs until it is told to end."""
    from sglang.srt.entrypoints.http_server import launch_server
    from sglang.srt.server_args import prepare_server_args

    model, *flags = sys.argv[1:]
    special = {"--model-path": model} | ({} if "--is-embedding" in flags else GENERATING)
    arguments = prepare_server_args(with_defaults(flags, COMMON | TWIN | special))
    launch_server(arguments, run_scheduler_process_func=run_twin)


if __name__ == "__main__":
    main()
