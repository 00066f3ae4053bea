"""Serves a model with llama.cpp's server: FILE NAME PORT CONTEXT MAX_TOKENS REPEAT_PENALTY. Ends when its standard input does."""

import sys

import xllamacpp

file, name, port, context, max_tokens, repeat_penalty = sys.argv[1:]
parameters = xllamacpp.CommonParams()
parameters.model.path = file
# The default name of a model in the API is the path of its file.
parameters.model_alias = {name}
parameters.hostnames = ["127.0.0.1"]
parameters.port = int(port)
parameters.n_ctx = int(context)
parameters.n_predict = int(max_tokens)
# Unless a request says otherwise, the most likely token is chosen each time: the same answer in each run.
parameters.sampling.temp = 0.0
parameters.sampling.penalty_repeat = float(repeat_penalty)
# A request at a time, so that the results do not depend on each other.
parameters.n_parallel = 1
# The model's own template, which knows tools.
parameters.use_jinja = True
# A graphics card that happens to be installed must not change the results.
parameters.n_gpu_layers = 0
server = xllamacpp.Server(parameters)
sys.stdin.read()
