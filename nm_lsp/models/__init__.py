"""Layer 2: the embedding model (weights, installation, tokenizer, embedder) and the search of its vectors.

The only package that imports onnxruntime, tokenizers, onnx and annoy. May import base and domain; never engine,
storage or a face. Nothing is imported here, so that `models.tokenizer` stays free of onnxruntime.
"""
