"""What most configs have in common."""

COMMON = {"vocab_size": 320, "max_position_embeddings": 128, "hidden_act": "silu", "rms_norm_eps": 0.01,
          "bos_token_id": None, "eos_token_id": 299, "pad_token_id": 297, "attention_dropout": 0.0, "use_cache": True}  # fmt: skip
