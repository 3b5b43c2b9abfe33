"""Runs a model of a table in onnxruntime: run_onnx_table.py MODEL INPUTS OUTPUT
  INPUTS  JSON: of each column its type and its values, {"age": {"type": "float32", "values": [1, null]}};
          null is a missing number
  OUTPUT  JSON: of each output of the model its values, row by row
"""

import json
import pathlib
import sys

import numpy as np
import onnxruntime

TYPES = {"float32": np.float32, "float64": np.float64, "int64": np.int64, "string": object}

model, inputs, output = sys.argv[1:]
session = onnxruntime.InferenceSession(model)
columns = json.loads(pathlib.Path(inputs).read_text(encoding="utf-8"))
feeds = {name: np.array(column["values"], TYPES[column["type"]]).reshape(-1, 1) for name, column in columns.items()}
results = session.run(None, feeds)
answers = {described.name: values.ravel().tolist() for described, values in zip(session.get_outputs(), results)}
pathlib.Path(output).write_text(json.dumps(answers), encoding="utf-8")
