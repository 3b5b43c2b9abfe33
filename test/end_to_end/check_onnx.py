"""Checks an ONNX file, shapes included: check_onnx.py MODEL"""

import sys

import onnx

model = onnx.load(sys.argv[1])
onnx.checker.check_model(model, full_check=True)
inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
known = {value.name for value in inferred.graph.value_info} | {value.name for value in inferred.graph.output}
for node in model.graph.node:
    assert known.issuperset(node.output), f"the shape of {node.output} does not follow"
