// What tensors are for, by their names: the kind of module, and the layer and role of each tensor.

// Kinds of modules: a pattern that the name of a tensor fits, the first one counts.
const KINDS = [
  ["norm", /norm|(^|[._/])(ln|bn|rms)(_?[a-z0-9]+)?([._/]|$)/],
  ["experts", /expert/],
  ["attention", /^(?!.*[._/]ff[._/]).*(attn|attention|(^|[._/])(to_)?(q|k|v|o|qkv)(_proj)?([._/]|$))/],
  ["feed-forward", /mlp|ffn|(^|[._/])ff[._/]|feed_?forward|(^|[._/])fc\d?([._/]|$)|(up|gate|down)_proj|intermediate/],
  ["embedding", /embed|embd|emb_proj|(^|[._/])(wte|wpe)([._/]|$)/],
  ["head", /lm_head|(^|[._/])(output|head|classifier|score|logits)([._/]|$)/],
  ["convolution", /conv|downsample|upsample/],
  ["recurrent", /lstm|gru|rnn/],
];
export const KIND_NAMES = [...KINDS.map(([kind]) => kind), "other"];

export function kindOf(name) {
  const lower = name.toLowerCase();
  return KINDS.find(([, pattern]) => pattern.test(lower))?.[0] ?? "other";
}

// Short names of roles: a pattern of the name behind the number of the layer, in the order of rows.
const ROLES = [
  ["q", /(^|[._])(q_proj|attn_q|query|wq|to_q|q_lin)$/],
  ["k", /(^|[._])(k_proj|attn_k|key|wk|to_k|k_lin)$/],
  ["v", /(^|[._])(v_proj|attn_v|value|wv|to_v|v_lin)$/],
  ["q k v", /(^|[._])(qkv(_proj)?|attn_qkv|query_key_value|wqkv|in_proj|attn\.c_attn)$/],
  ["o", /(^|[._])(o_proj|attn_output|wo|to_out\.0|attn\.(out_proj|proj|c_proj)|attention\.(output\.)?dense|out_lin)$/],
  ["router", /(^|[._])(ffn_gate_inp|router|mlp\.gate|block_sparse_moe\.gate)$/],
  ["gate", /(^|[._])(gate_proj|ffn_gate|(feed_forward|mlp|ffn|\*)\.w1)$/],
  ["up", /(^|[._])(up_proj|ffn_up|(feed_forward|mlp|ffn|\*)\.w3|fc1|c_fc|intermediate\.dense|dense_h_to_4h|lin1)$/],
  ["gate, up", /(^|[._])gate_up_proj$/],
  ["down", /(^|[._])(down_proj|ffn_down|(feed_forward|mlp|ffn|\*)\.w2|fc2|mlp\.c_proj|output\.dense|dense_4h_to_h|lin2)$/],
];
const PARTS = /[._](weight|bias|qweight|qzeros|scales|g_idx|weight_scale(_inv)?|absmax)$/;

// "attn_q.bias" becomes { label: "q bias", rank }; rank orders the rows.
function roleOf(rest) {
  const part = PARTS.exec(rest)?.[1] ?? "";
  const stem = part ? rest.slice(0, -part.length - 1) : rest;
  const known = ROLES.findIndex(([, pattern]) => pattern.test(stem.toLowerCase()));
  const isExpert = /expert|_exps/.test(stem) ? "experts " : "";
  const label = known >= 0 ? isExpert + ROLES[known][0] : stem;
  const suffix = part && part !== "weight" && part !== "qweight" ? " " + part : "";
  return { label: label + suffix || rest, rank: (known >= 0 ? known : ROLES.length) * 2 + (suffix ? 1 : 0) };
}

const NUMBER = /^\d{1,9}$/;

// "model.layers.3.mlp.experts.7.w1" becomes ["model.layers", 3, "mlp.experts.*.w1"]; null without a number.
function placeOf(name) {
  const words = name.split(/[./:]/);
  const at = words.findIndex((w) => NUMBER.test(w));
  if (at < 0 || at === words.length - 1) return null;
  const rest = words.slice(at + 1).map((w) => (NUMBER.test(w) ? "*" : w));
  return [words.slice(0, at).join("."), Number(words[at]), rest.join(".")];
}

const LONGEST = 22; // letters of a label that are drawn
const MOST_WORDS = 8;

// "attentions.*.transformer_blocks.*.attn1.to_q" becomes "…*.attn1.to_q": the last words that no other label ends with.
function shortLabel(label, others) {
  if (label.length <= LONGEST) return label;
  const words = label.split(".").slice(-MOST_WORDS);
  const ends = words.map((_, i) => words.slice(i).join(".")).filter((end) => !others.some((o) => o !== label && `.${o}`.endsWith(`.${end}`)));
  const end = ends.find((e) => e.length < LONGEST) ?? ends.at(-1) ?? label;
  return end === label ? label : `…${end}`;
}

class Stack {
  constructor(prefix) {
    Object.assign(this, { prefix, layers: new Map(), roles: new Map(), tensors: 0 });
  }

  add(id, layer, rest) {
    if (!this.layers.has(layer)) this.layers.set(layer, new Map());
    const row = this.layers.get(layer);
    if (!this.roles.has(rest)) this.roles.set(rest, { rest, kind: kindOf(rest), ...roleOf(rest) });
    if (!row.has(rest)) row.set(rest, []);
    row.get(rest).push(id);
    this.tensors++;
  }

  // Roles of the same label are told apart by their whole names.
  rows() {
    const all = [...this.roles.values()];
    const times = new Map();
    for (const r of all) times.set(r.label, (times.get(r.label) || 0) + 1);
    return all
      .map((r) => ({ ...r, label: times.get(r.label) > 1 ? r.rest.replace(/\.weight$/, "") : r.label }))
      .sort((a, b) => a.rank - b.rank);
  }

  // cells[row][column]: ids of tensors.
  table() {
    const numbers = [...this.layers.keys()].sort((a, b) => a - b);
    const shown = numbers.slice(0, MOST_LAYERS);
    const roles = this.rows();
    const labels = roles.slice(0, MOST_ROLES).map((r) => r.label);
    const rows = roles.slice(0, MOST_ROLES).map((r) => ({ ...r, label: shortLabel(r.label, labels) }));
    return {
      prefix: this.prefix,
      layers: shown,
      allLayers: numbers.length,
      roles: rows,
      allRoles: roles.length,
      tensors: this.tensors,
      cells: rows.map((r) => shown.map((n) => this.layers.get(n).get(r.rest) || [])),
    };
  }
}

const MOST_STACKS = 6;
const MOST_LAYERS = 256;
const MOST_ROLES = 48;
const MOST_TENSORS = 200_000; // names that are looked at

// The repeated layers of a model: { stacks, omitted }, the stack with the most tensors first.
// nameOf(i): the name of tensor i.
export function stacksOf(count, nameOf) {
  const found = new Map();
  const looked = Math.min(count, MOST_TENSORS);
  for (let i = 0; i < looked; i++) {
    const place = placeOf(nameOf(i));
    if (!place) continue;
    const [prefix, layer, rest] = place;
    if (!found.has(prefix)) found.set(prefix, new Stack(prefix));
    found.get(prefix).add(i, layer, rest);
  }
  const all = [...found.values()].filter((s) => s.layers.size > 1).sort((a, b) => b.tensors - a.tensors);
  return {
    stacks: all.slice(0, MOST_STACKS).map((s) => s.table()),
    omitted: Math.max(0, all.length - MOST_STACKS),
    unseen: count - looked,
  };
}
