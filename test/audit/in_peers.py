"""What other programs read of files of Lockstep, as JSON. Runs in the Python of scripts/peers/python.

in_peers.py onnx MODEL COLUMNS OUTPUT     COLUMNS: a JSON object of lists, null for a missing number
in_peers.py tensorboard DIRECTORY OUTPUT  scalars as [tag, step, value]
in_peers.py safetensors FILE OUTPUT       tensors as lists, and the file's metadata
"""

import json
import pathlib
import sys

import numpy as np


def onnx(model, columns):
    import onnxruntime

    kinds = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(int64)": np.int64,
             "tensor(string)": object}
    session = onnxruntime.InferenceSession(model)
    given = json.loads(pathlib.Path(columns).read_text())
    feeds = {each.name: np.array(given[each.name], kinds[each.type]).reshape([-1, *each.shape[1:]])
             for each in session.get_inputs()}
    found = session.run(None, feeds)
    texts = {key: json.loads(text) for key, text in session.get_modelmeta().custom_metadata_map.items()
             if text[:1] in "{["}
    return {"outputs": {each.name: values.tolist() for each, values in zip(session.get_outputs(), found)},
            "metadata": texts}


def tensorboard(directory):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(directory, size_guidance={"scalars": 0}).Reload()
    return [[tag, event.step, event.value] for tag in events.Tags()["scalars"] for event in events.Scalars(tag)]


def safetensors(file):
    from safetensors import safe_open

    with safe_open(file, "np") as tensors:
        return {"tensors": {name: tensors.get_tensor(name).tolist() for name in tensors.keys()},
                "metadata": tensors.metadata()}


mode, *inputs, output = sys.argv[1:]
pathlib.Path(output).write_text(json.dumps({"onnx": onnx, "tensorboard": tensorboard,
                                            "safetensors": safetensors}[mode](*inputs)))
