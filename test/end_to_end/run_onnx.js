// Runs a model in onnxruntime: node run_onnx.js RUNTIME MODEL RECORDS DIMS OUTPUT
//   RUNTIME  directory in which onnxruntime-node was installed
//   RECORDS  file of float32 numbers; DIMS is their shape, "64,8,8,3"
//   OUTPUT   each output of the model is written to OUTPUT.NAME as float32 numbers
const fs = require('fs');
const path = require('path');

async function main([runtime, model, records, dims, output]) {
  const ort = require(path.resolve(runtime, 'node_modules', 'onnxruntime-node'));
  const bytes = fs.readFileSync(records);
  const numbers = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
  const session = await ort.InferenceSession.create(model);
  const input = new ort.Tensor('float32', numbers, dims.split(',').map(Number));
  const results = await session.run({[session.inputNames[0]]: input});
  for (const name of session.outputNames) {
    const data = results[name].data;
    fs.writeFileSync(`${output}.${name}`, Buffer.from(data.buffer, data.byteOffset, data.byteLength));
  }
}

main(process.argv.slice(2)).catch((error) => {
  console.error(error);
  process.exit(1);
});
