"""Language models with random weights, made on the spot: a GGUF file, and a folder of transformers.

They speak nonsense, which is the point: real servers around them refuse, ignore and constrain as
they do around any model, and what comes back is as hostile as random bytes are.
"""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
CONTEXT = 4096
_WIDTH, _HEADS, _INNER, _LAYERS = 64, 4, 128, 2


def tokenizer() -> Any:
    """Train a byte-level BPE tokenizer of some 400 tokens."""
    lib = import_module("tokenizers")
    made = lib.Tokenizer(lib.models.BPE())
    made.pre_tokenizer = lib.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = lib.decoders.ByteLevel()
    trainer = lib.trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=list(SPECIAL),
        initial_alphabet=lib.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator([Path(__file__).read_text()], trainer)
    return made


def write_gguf(path: Path) -> None:
    """Write a llama of two layers for llama.cpp."""
    gguf, np = import_module("gguf"), import_module("numpy")
    learned = json.loads(tokenizer().to_str())["model"]
    tokens = sorted(learned["vocab"], key=learned["vocab"].get)
    out = gguf.GGUFWriter(path, "llama")
    out.add_name("tiny")
    out.add_context_length(CONTEXT)
    out.add_embedding_length(_WIDTH)
    out.add_block_count(_LAYERS)
    out.add_feed_forward_length(_INNER)
    out.add_head_count(_HEADS)
    out.add_head_count_kv(_HEADS)
    out.add_layer_norm_rms_eps(1e-5)
    out.add_rope_dimension_count(_WIDTH // _HEADS)
    out.add_vocab_size(len(tokens))
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre("gpt-2")
    out.add_token_list(tokens)
    out.add_token_types(
        [gguf.TokenType.CONTROL if token in SPECIAL else gguf.TokenType.NORMAL for token in tokens]
    )
    out.add_token_merges([" ".join(merge) for merge in learned["merges"]])
    out.add_bos_token_id(0)
    out.add_eos_token_id(2)
    out.add_add_bos_token(False)
    out.add_chat_template(CHATML)
    random = np.random.default_rng(7)

    def weight(name: str, *shape: int) -> None:
        out.add_tensor(name, random.normal(0, 0.3, shape).astype(np.float32))

    def ones(name: str) -> None:
        out.add_tensor(name, np.ones(_WIDTH, dtype=np.float32))

    weight("token_embd.weight", len(tokens), _WIDTH)
    for layer in range(_LAYERS):
        layer_name = f"blk.{layer}"
        ones(f"{layer_name}.attn_norm.weight")
        ones(f"{layer_name}.ffn_norm.weight")
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            weight(f"{layer_name}.{part}.weight", _WIDTH, _WIDTH)
        for part in ("ffn_gate", "ffn_up"):
            weight(f"{layer_name}.{part}.weight", _INNER, _WIDTH)
        weight(f"{layer_name}.ffn_down.weight", _WIDTH, _INNER)
    ones("output_norm.weight")
    weight("output.weight", len(tokens), _WIDTH)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def write_transformers(folder: Path) -> None:
    """Write the same shape of model with its tokenizer for transformers."""
    lib = import_module("transformers")
    words = lib.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer(),
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        chat_template=CHATML,
    )
    words.save_pretrained(folder)
    import_module("torch").manual_seed(7)
    config = lib.LlamaConfig(
        vocab_size=len(words), hidden_size=_WIDTH, intermediate_size=_INNER,
        num_hidden_layers=_LAYERS, num_attention_heads=_HEADS, max_position_embeddings=CONTEXT,
        eos_token_id=2, pad_token_id=0, bos_token_id=0,
    )  # fmt: skip
    lib.LlamaForCausalLM(config).save_pretrained(folder)
