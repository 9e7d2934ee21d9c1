"""Makes a model that SGLang loads in a second, run as `tiny_model.py FOLDER`.

Its weights are random, so that its text is noise; its tokenizer, template and special tokens are
whole, so that everything around the model is real: templating, counting, parsers, grammars.
"""

import json
import sys
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

CONTEXT_TOKENS = 8192

PROSE = """
The engine answers each request with words, one token after another, until it has said enough or
its budget is used up. A client asks for a chat, for a message, for a response or for a completion;
the gateway reads what was asked, holds it to the contract and sends it on. What is the weather in
Paris, in Berlin, in Tokyo? It is sunny and warm, it is raining, there is some wind from the north.
The sky is blue and the grass is green. Two plus two is four, four times four is sixteen.
Let me think about this for a moment. First we look at the question, then at what is known, and
then we give an answer that is short and right. Here is what was found: nothing is missing.
{"name": "get_weather", "arguments": {"city": "Paris", "unit": "celsius"}}
{"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
"required": ["city"], "additionalProperties": false}
{"say": "hello", "think": "a while", "calls": [["add", {"a": 1, "b": 2}]], "words": 100}
one two three four five six seven eight nine ten word words token tokens user assistant system tool
""" * 4  # fmt: skip

PLAIN_SPECIALS = ("<think>", "</think>", "<tool_call>", "</tool_call>")
"""Part of the text: the parsers look for them there."""

CONTROLS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")

TEMPLATE = """\
{%- macro turn(role, text) %}<|im_start|>{{ role }}
{{ text }}<|im_end|>
{% endmacro %}
{%- set first = messages[0].content if messages[0].role == 'system' else '' %}
{%- set lead = namespace(text=first) %}
{%- if tools %}
{%- set lead.text = lead.text + '\n\nTools, each of which may be called:\n' %}
{%- for tool in tools %}{% set lead.text = lead.text + (tool | tojson) + '\n' %}{% endfor %}
{%- set lead.text = lead.text + 'To call one: <tool_call>{"name": …, "arguments": …}</tool_call>' %}
{%- endif %}
{%- if lead.text %}{{ turn('system', lead.text) }}{% endif %}
{%- for message in messages %}
{%- if message.role == 'assistant' %}
{%- set said = namespace(text=message.content or '') %}
{%- if message.reasoning_content %}
{%- set said.text = '<think>\n' + message.reasoning_content + '\n</think>\n\n' + said.text %}
{%- endif %}
{%- for call in message.tool_calls or [] %}
{%- set given = call.function.arguments %}
{%- set given = given if given is string else given | tojson %}
{%- set name = call.function.name | tojson %}
{%- set call_text = '{"name": ' + name + ', "arguments": ' + given + '}' %}
{%- set said.text = said.text + '\n<tool_call>\n' + call_text + '\n</tool_call>' %}
{%- endfor %}
{{- turn('assistant', said.text) }}
{%- elif message.role == 'tool' %}
{{- turn('user', '<tool_response>\n' + message.content + '\n</tool_response>') }}
{%- elif message.role != 'system' or not loop.first %}
{{- turn(message.role, message.content) }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% if enable_thinking is false or thinking is false %}<think>

</think>

{% endif %}
{%- endif %}
"""


def build_tokenizer():
    """A byte-level tokenizer that knows the words of `PROSE`; any other byte is a token."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=1000,
        special_tokens=list(CONTROLS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(PROSE.splitlines(), trainer)
    tokenizer.add_tokens(
        [AddedToken(text, normalized=False, special=False) for text in PLAIN_SPECIALS]
    )
    return tokenizer


def main(folder):
    """Writes the model's folder."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = build_tokenizer()
    end, padding = (tokenizer.token_to_id(name) for name in ("<|im_end|>", "<|endoftext|>"))
    torch.manual_seed(7)
    config = Qwen3Config(
        vocab_size=-(-tokenizer.get_vocab_size() // 64) * 64,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        max_position_embeddings=CONTEXT_TOKENS,
        tie_word_embeddings=False,
        eos_token_id=end,
        pad_token_id=padding,
    )
    Qwen3ForCausalLM(config).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    _write(
        folder / "tokenizer_config.json",
        tokenizer_class="PreTrainedTokenizerFast",
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        model_max_length=CONTEXT_TOKENS,
        clean_up_tokenization_spaces=False,
        chat_template=TEMPLATE,
    )
    _write(
        folder / "generation_config.json",
        do_sample=True,
        temperature=0.7,
        top_k=40,
        top_p=0.9,
        eos_token_id=[end, padding],
    )


def _write(path, **fields):
    path.write_text(json.dumps(fields, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
