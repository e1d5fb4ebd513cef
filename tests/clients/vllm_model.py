"""Write a small random Llama with a word-level tokenizer into a folder: a model for a server that cannot download one.

Runs in the environment of vllm_environment.sh: ``python vllm_model.py FOLDER``.
"""

from __future__ import annotations

import sys

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

WORDS = 64
SPECIAL = ["<pad>", "<bos>", "<eos>", "<unk>"]
"""The rest of the vocabulary are words: the digits, which the demo's prompts consist of, then w10, w11 and so on."""


def main(folder: str) -> None:
    """Make the model and its tokenizer, the same each time."""
    torch.manual_seed(7)
    words = [*SPECIAL, *map(str, range(10)), *(f"w{number}" for number in range(10, WORDS - len(SPECIAL)))]
    bare = Tokenizer(WordLevel({word: number for number, word in enumerate(words)}, unk_token="<unk>"))
    bare.pre_tokenizer = Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bare, pad_token="<pad>", bos_token="<bos>", eos_token="<eos>", unk_token="<unk>"
    )
    tokenizer.save_pretrained(folder)
    config = LlamaConfig(
        vocab_size=WORDS,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=256,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    LlamaForCausalLM(config).save_pretrained(folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
