"""Runs a model in onnxruntime: run_onnx.py MODEL RECORDS DIMS OUTPUT
  RECORDS  file of float32 numbers; DIMS is their shape, "64,8,8,3"
  OUTPUT   each output of the model is written to OUTPUT.NAME as float32 numbers
"""

import sys

import numpy as np
import onnxruntime

model, records, dims, output = sys.argv[1:]
session = onnxruntime.InferenceSession(model)
x = np.fromfile(records, np.float32).reshape([int(dim) for dim in dims.split(",")])
results = session.run(None, {session.get_inputs()[0].name: x})
for described, values in zip(session.get_outputs(), results):
    values.tofile(f"{output}.{described.name}")
