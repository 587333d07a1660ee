// A small model to try the page with: a decoder of six layers, made here, with one NaN.

const WIDTH = 48;
const LAYERS = 6;
const TOKENS = 160;

// Numbers that look like weights and are the same every time.
function normal(seed) {
  let state = seed;
  const next = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
  return () => next() + next() + next() + next() - 2;
}

function tensors() {
  const list = [];
  const add = (name, shape, scale) => {
    const random = normal(list.length + 1);
    const count = shape.reduce((a, b) => a * b, 1);
    list.push([name, shape, Float32Array.from({ length: count }, () => (scale ? random() * scale : 1))]);
  };
  add("model.embed_tokens.weight", [TOKENS, WIDTH], 0.6);
  for (let n = 0; n < LAYERS; n++) {
    const p = `model.layers.${n}.`;
    add(p + "input_layernorm.weight", [WIDTH], 0);
    for (const name of ["q", "k", "v", "o"]) add(`${p}self_attn.${name}_proj.weight`, [WIDTH, WIDTH], 0.1 + 0.03 * n);
    add(p + "post_attention_layernorm.weight", [WIDTH], 0);
    for (const name of ["gate", "up"]) add(`${p}mlp.${name}_proj.weight`, [3 * WIDTH, WIDTH], 0.2 - 0.02 * n);
    add(p + "mlp.down_proj.weight", [WIDTH, 3 * WIDTH], 0.15);
  }
  add("model.norm.weight", [WIDTH], 0);
  add("lm_head.weight", [TOKENS, WIDTH], 0.3);
  list.find(([name]) => name === "model.layers.4.mlp.up_proj.weight")[2][77] = NaN;
  return list;
}

// The model as a File of safetensors.
export function exampleFile() {
  const header = { __metadata__: { format: "pt", license: "CC0-1.0", note: "An example: the weights mean nothing." } };
  const parts = [];
  let at = 0;
  for (const [name, shape, values] of tensors()) {
    header[name] = { dtype: "F32", shape, data_offsets: [at, (at += values.byteLength)] };
    parts.push(values);
  }
  let text = JSON.stringify(header);
  text = text.padEnd(Math.ceil(text.length / 8) * 8);
  const length = new BigUint64Array([BigInt(text.length)]);
  return new File([length, text, ...parts], "example.safetensors");
}
