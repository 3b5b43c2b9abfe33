// Runs a model of a table in onnxruntime: node run_onnx_table.js RUNTIME MODEL INPUTS OUTPUT
//   RUNTIME  directory in which onnxruntime-node was installed
//   INPUTS   JSON: of each column its type and its values, {"age": {"type": "float32", "values": [1, null]}};
//            null is a missing number
//   OUTPUT   JSON: of each output of the model its shape and its values
const fs = require('fs');
const path = require('path');

const arrays = {
  float32: (values) => Float32Array.from(values, (value) => (value === null ? NaN : value)),
  float64: (values) => Float64Array.from(values, (value) => (value === null ? NaN : value)),
  int64: (values) => BigInt64Array.from(values, BigInt),
  string: (values) => values,
};

async function main([runtime, model, inputs, output]) {
  const ort = require(path.resolve(runtime, 'node_modules', 'onnxruntime-node'));
  const session = await ort.InferenceSession.create(model);
  const feeds = {};
  for (const [name, { type, values }] of Object.entries(JSON.parse(fs.readFileSync(inputs)))) {
    feeds[name] = new ort.Tensor(type, arrays[type](values), [values.length, 1]);
  }
  const results = await session.run(feeds);
  const answers = {};
  for (const name of session.outputNames) {
    answers[name] = { dims: results[name].dims, values: Array.from(results[name].data) };
  }
  fs.writeFileSync(output, JSON.stringify(answers));
}

main(process.argv.slice(2)).catch((error) => {
  console.error(error);
  process.exit(1);
});
