"""llama.cpp's server on 127.0.0.1 and one thread: ``python serve.py MODEL PORT CONTEXT SLOTS [embedding]``."""

from __future__ import annotations

import sys
import threading

import xllamacpp

_MODEL, _PORT, _CONTEXT, _SLOTS, *_MORE = sys.argv[1:]

_asked = xllamacpp.CommonParams()
_asked.model.path = _MODEL
_asked.model_alias = {"smollm2"}
_asked.hostnames, _asked.port = ["127.0.0.1"], int(_PORT)
_asked.n_ctx, _asked.n_parallel = int(_CONTEXT), int(_SLOTS)
_asked.cpuparams.n_threads = _asked.cpuparams_batch.n_threads = 1
_asked.warmup = False
if _MORE:
    _asked.embedding = True
    _asked.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
# It serves in threads of its own as long as it is referred to.
_serving = xllamacpp.Server(_asked)
threading.Event().wait()
