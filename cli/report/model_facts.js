// What a model is: from its metadata, its config.json, and the names and shapes of its tensors.

import { countText, shapeText } from "./basics.js";

const count = (n) => Number(n).toLocaleString("en");

// The first value among keys of the metadata or of config.json: { value, from }.
function stated({ get, config }, keys) {
  for (const key of keys) {
    const value = get(key);
    if (value !== undefined && value !== null && value !== "") return { value, from: key };
  }
  for (const key of keys) {
    const value = config?.[key] ?? config?.text_config?.[key];
    if (value !== undefined && value !== null && typeof value !== "object")
      return { value, from: `config.json: ${key}` };
  }
  return null;
}

// Kinds of models by names of tensors; the first one that fits.
const SHAPES = [
  ["LoRA adapter", (n) => /lora_(a|b|up|down)\b|^(unet|text_encoder):\d+:(up|down)$/i.test(n)],
  ["diffusion model", (n) => /(^|\.)(down_blocks|input_blocks|double_blocks|transformer_blocks)\./.test(n)],
  ["autoencoder of images", (n) => /(^|\.)(encoder|decoder)\.(down|up|mid)(_blocks?)?\./.test(n)],
  ["decoder with attention", (n) => /self_attn|(^|\.)blk\.\d+\.attn|(^|\.)h\.\d+\.attn|attention\.wq/.test(n)],
  ["encoder with attention", (n) => /encoder\.layers?\.\d+|attention\.self\.query/.test(n)],
  ["network with attention", (n) => /attn|attention/.test(n)],
  ["recurrent network", (n) => /(^|[._])(lstm|gru|rnn)[._]|weight_ih/.test(n)],
];

function kindOfModel(m) {
  const found = stated(m, ["general.architecture", "model_type", "modelspec.architecture", "architecture", "ss_network_module"]);
  const title = stated(m, ["general.name", "modelspec.title", "_name_or_path"]);
  const named = title ? ` (${String(title.value).slice(0, 120)})` : "";
  if (found) return { text: String(found.value).slice(0, 120) + named, from: found.from };
  const hasConvolutions = m.tensors.some((t) => t.shape.length === 4);
  const names = m.tensors.map((t) => t.name);
  const kind = SHAPES.find(([, fits]) => names.some(fits))?.[0] ?? (hasConvolutions ? "convolutional network" : null);
  return kind && { text: kind, from: "names and shapes of tensors" };
}

const PREFIXED = (m, key) => {
  const kind = m.get("general.architecture");
  return kind ? [`${kind}.${key}`] : [];
};

function layersOf(m) {
  const found = stated(m, [...PREFIXED(m, "block_count"), "num_hidden_layers", "n_layer", "num_layers"]);
  const least = m.unseen ? "at least " : "";
  const stacks = m.stacks.map((s) => `${least}${count(s.allLayers)} in ${s.prefix || "the root"}`);
  if (found) return { text: numberText(found.value), from: found.from };
  const MOST = 3;
  const more = stacks.length > MOST ? ` and ${stacks.length - MOST} further ${stacks.length === MOST + 1 ? "group" : "groups"}` : "";
  return stacks.length ? { text: stacks.slice(0, MOST).join(", ") + more, from: "names of tensors" } : null;
}

const isEmbedding = (t) => t.shape.length === 2 && /embed_tokens|token_embd|word_embeddings|(^|\.)wte\./.test(t.name);

// GGUF lists the fastest dimension last here, as all formats do.
function widthOf(m) {
  const found = stated(m, [...PREFIXED(m, "embedding_length"), "hidden_size", "n_embd", "d_model"]);
  const inner = stated(m, [...PREFIXED(m, "feed_forward_length"), "intermediate_size"]);
  const heads = stated(m, [...PREFIXED(m, "attention.head_count"), "num_attention_heads", "n_head"]);
  const more = [];
  if (inner) more.push(`feed-forward ${numberText(inner.value)}`);
  if (heads) more.push(`${numberText(heads.value)} heads`);
  if (found) return { text: [numberText(found.value), ...more].join(", "), from: found.from };
  const embedding = m.tensors.find(isEmbedding);
  return embedding ? { text: count(embedding.shape[1]), from: `shape of ${embedding.name}` } : null;
}

const numberText = (v) =>
  typeof v === "number" || typeof v === "bigint" || /^\d+$/.test(String(v)) ? count(v) : String(v).slice(0, 80);

function plain(m, keys, text = numberText) {
  const found = stated(m, keys);
  return found && { text: text(found.value), from: found.from };
}

function vocabularyOf(m) {
  const found = plain(m, [...PREFIXED(m, "vocab_size"), "vocab_size"]);
  if (found) return found;
  const embedding = m.tensors.find(isEmbedding);
  return embedding ? { text: count(embedding.shape[0]), from: `shape of ${embedding.name}` } : null;
}

// Names of tensors that hold one quantised weight together.
const SCHEMES = [
  ["GPTQ", (n) => n.endsWith(".g_idx")],
  ["AWQ or GPTQ", (n) => n.endsWith(".qweight")],
  ["bitsandbytes, 4 bits", (n) => n.includes(".quant_state.")],
  ["bitsandbytes, 8 bits", (n) => n.endsWith(".SCB")],
  ["FP8 with scales", (n) => /\.weight_scale(_inv)?$/.test(n)],
  ["packed with scales", (n) => n.endsWith(".weight_packed")],
  ["MLX", (n) => n.endsWith(".scales")],
];
const IS_BLOCK = /^(q\d|iq\d|tq\d|mxfp|nvfp)/;

function schemeOf(m) {
  const shareOf = (bytes) => (bytes * 100 < m.bytes ? "< 1 %" : `${Math.round((100 * bytes) / m.bytes)} %`);
  const shares = m.types.filter((t) => t.bytes > 0).map((t) => `${t.name} ${shareOf(t.bytes)}`);
  const list = shares.slice(0, 4).join(", ") + (shares.length > 4 ? ` and ${shares.length - 4} further types` : "");
  const from = "element types, by bytes";
  const blocks = m.types.filter((t) => IS_BLOCK.test(t.name)).map((t) => t.name);
  if (blocks.length) return { text: `blocks of ${blocks.slice(0, 3).join(", ")}: ${list}`, from };
  const method = stated(m, ["quantize_method"])?.value ?? m.config?.quantization_config?.quant_method;
  if (typeof method === "string") return { text: `${method}: ${list}`, from: "config.json: quantization_config" };
  const found = SCHEMES.find(([, fits]) => m.tensors.some((t) => fits(t.name)));
  if (found) return { text: `${found[0]}: ${list}`, from: "names of tensors" };
  const isPlain = m.types.length > 0 && m.types.every((t) => /^(f16|bf16|f32|f64)$/.test(t.name));
  return { text: (isPlain ? "none: " : "") + (list || "no element type"), from };
}

// m: { get(key), config, tensors: [{ name, shape }], types: [{ name, bytes }], bytes, elements, stacks,
// unseen: tensors whose names were not looked at }.
// Return [{ title, text, from }]; what the file does not state is said.
export function modelFacts(m) {
  const context = [...PREFIXED(m, "context_length"), "max_position_embeddings", "n_positions", "n_ctx"];
  const licence = ["general.license", "general.license.name", "license", "licence", "modelspec.license"];
  const all = [
    ["Kind", kindOfModel(m)],
    ["Layers", layersOf(m)],
    ["Width", widthOf(m)],
    ["Vocabulary", vocabularyOf(m)],
    ["Context", plain(m, context)],
    ["Quantisation", schemeOf(m)],
    ["Licence", plain(m, licence, (v) => String(v).slice(0, 120))],
    ["Made by", plain(m, ["general.quantized_by", "general.author", "general.organization", "modelspec.author", "producer_name"], (v) => String(v).slice(0, 120))],
  ];
  const always = new Set(["Kind", "Layers", "Width", "Context", "Licence"]);
  return all
    .filter(([title, fact]) => fact || always.has(title))
    .map(([title, fact]) => ({ title, text: fact?.text ?? "not stated", from: fact?.from ?? "", isKnown: Boolean(fact) }));
}

// A sentence that says what a tensor is: "f32 [4096, 4096], 16.8 M values".
export const tensorText = (t) => `${t.dtype} ${shapeText(t.shape)}, ${countText(t.elements)} values`;
