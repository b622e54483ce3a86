"""`python tests/models/make_reference.py FOLDER` writes the reference vectors from the model in FOLDER.

Independent of this project: torch and transformers in float64, one text at a time, so without padding. Neither package
is a dependency; run it in an environment of its own that has both. FOLDER is `model` in the weights' package.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer

HERE = Path(__file__).parent
texts = [
    entry if isinstance(entry, str) else entry["repeat"] * entry["times"]
    for entry in json.loads((HERE / "reference_texts.json").read_text(encoding="utf-8"))
]
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
model = AutoModel.from_pretrained(sys.argv[1], attn_implementation="eager").double().eval()
vectors, lengths = [], []
with torch.no_grad():
    for text in texts:
        tokens = tokenizer(text, return_tensors="pt", truncation=True, max_length=256)
        mean = model(**tokens).last_hidden_state[0].mean(0)
        vectors.append((mean / mean.norm()).numpy())
        lengths.append(tokens["input_ids"].shape[1])
np.savez_compressed(
    HERE / "reference_vectors.npz",
    vectors=np.stack(vectors).astype(np.float32),
    lengths=np.array(lengths, dtype=np.int32),
)
