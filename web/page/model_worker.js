// The worker: opens models and answers questions of the page (client.js).  A question is
// { id, method, args }, an answer { id, result } or { id, error }; { id, cancel } stops the work.
// { ready } says that the first file can be opened at full speed.

import { dtypes, open, version } from "./heft.js";
import { ColumnOrder } from "./column_order.js";
import { compareRows } from "./compare_rows.js";
import { metadataRows, valueText } from "./metadata_rows.js";
import { mapOf, overviewOf } from "./overview_data.js";
import { ModuleTree } from "./module_tree.js";
import { indexOfSet, isJoinedHere, namesOfSet, numbered } from "./numbered.js";
import { otherWeights } from "./openable.js";
import { surveyPair } from "./pair_survey.js";
import { npyOf, safetensorsOf } from "./save_files.js";
import { sliceOf } from "./slice.js";
import { survey } from "./survey.js";
import { ValueSample } from "./value_sample.js";
import { IF_QUANTISED } from "./limits.js";
import { mayBeQuantised, schemesOf } from "./quantised.js";
import { settingsBeside, settingsOf } from "./settings.js";
import { numbersOf, partOf, textsOf } from "./values.js";
import { warmUp } from "./warm_up.js";

const models = new Map(); // by number: Entry
const running = new Map(); // by id of the question: AbortController
let next = 1;

const now = () => performance.timeOrigin + performance.now();

// ---- what the page learns about a model

// The members of model.columns() that the page uses.
const COLUMNS = [
  ...["count", "nameBytes", "nameEnds", "dtypes", "dtypeNames", "ranks", "dims", "dimEnds"],
  ...["elements", "nbytes", "offsets", "stored", "shards"],
];

const columnsOf = (all) => Object.fromEntries(COLUMNS.map((name) => [name, all[name]]));

// Tensors that the page shows before it has the columns of all of them.
const FIRST = 256;

// A model that is open.  What takes long for many tensors is made when it is first asked for.
class Entry {
  // stored: the tensors of the file.  decoded: those that they represent, which are shown; null: those
  // of the file are.
  constructor(stored, decoded, settings) {
    Object.assign(this, { stored, settings, model: decoded ?? stored, isDecoded: Boolean(decoded) });
    this.schemes = decoded ? schemesOf(decoded) : null;
  }

  // all.tiedTo is found when a tensor is chosen.
  get all() {
    return this.model.columns();
  }
  get order() {
    this.ordered ||= new ColumnOrder(columnsOf(this.all), () => this.sampled?.figures);
    return this.ordered;
  }
  get tree() {
    this.modules ||= new ModuleTree(this.order);
    return this.modules;
  }
  // types: those of the package.
  sampleOf(types) {
    this.sampled ||= new ValueSample(this.model, types, () => running.size > 1);
    return this.sampled;
  }
}

function typeSums(c) {
  const sums = c.dtypeNames.map((name) => ({ name, bytes: 0, tensors: 0 }));
  let elements = 0;
  let bytes = 0;
  for (let i = 0; i < c.count; i++) {
    const sum = sums[c.dtypes[i]];
    sum.bytes += c.nbytes[i] || 0;
    sum.tensors++;
    elements += c.elements[i] || 0;
    bytes += c.nbytes[i] || 0;
  }
  return {
    elements,
    bytes,
    types: sums.filter((s) => s.tensors).sort((a, b) => b.bytes - a.bytes),
  };
}

function describe(model) {
  const {
    format,
    version: formatVersion,
    name,
    size,
    generator,
    alignment,
    notices,
    shards,
    checksums,
    requests,
    bytesRead,
  } = model;
  return {
    heft: version,
    format,
    version: formatVersion,
    name,
    size,
    generator,
    alignment,
    notices: [...notices],
    shards: shards.map((s) => ({ ...s })),
    checksums: { ...checksums },
    parts: model.parts.map((p) => ({ ...p })),
    requests,
    bytesRead,
    hasVocabulary:
      model.parts.some((p) => p.role === "vocab") || model.metadata.has("tokenizer.ggml.tokens"),
  };
}

// ---- methods

// Join the files of a numbered set, of which `input` is one, without an index: the files beside it, or
// at an address all of which the names are known.
async function joinSet({ input, name }, near, options) {
  const own = numbered(name);
  const give = (shard) =>
    near.size ? near.get(shard) || null : new URL(encodeURIComponent(shard), input);
  const first = namesOfSet(own, true)[0];
  const hasZero = near.size ? near.has(first) : own.number === 0;
  const openOne = async (shard) => {
    const file = give(shard);
    try {
      return file && (await open(file, options));
    } catch (e) {
      if (e.rule === "web/not-found") return null;
      throw Object.assign(e, { message: `${shard}: ${e.message}` });
    }
  };
  return indexOfSet(namesOfSet(own, hasZero), openOne, give);
}

// What is not there of a model, and what is there besides.
function completeness(model, { name, files, joined }) {
  const own = joined ? null : numbered(name);
  const shards = model.shards.map((s) => s.name);
  const missing = model.shards.filter((s) => s.status !== "ok").map((s) => s.name);
  return {
    missing: [...missing, ...(joined?.missing ?? [])],
    files: joined ? shards.length + joined.missing.length : shards.length + 1,
    alone: own && !shards.length && own.count > 1 ? own : null,
    joined: joined ? shards.length : 0,
    others: otherWeights(files || [], [name, ...shards]),
    total: model.shards.reduce((sum, s) => sum + (s.status === "ok" ? s.size || 0 : 0), joined ? 0 : model.size),
  };
}

async function openModel({ input, name, files, whole, joins, decodes }, { signal, progress }) {
  let lastByte = now();
  const near = new Map((files || []).map((f) => [f.name, f]));
  let settings = null;
  const beside = () => (settings ??= typeof input === "string" && !files ? settingsBeside(input, signal) : settingsOf(near.get("config.json")));
  const options = {
    signal,
    maxTensors: 1 << 24,
    ...(whole ? { maxWholeBytes: whole } : {}),
    onProgress: (p) => {
      lastByte = now();
      if (p.bytes) beside(); // the address has answered
      progress(p);
    },
  };
  const isSet = isJoinedHere(name) && (joins || near.size > 1);
  const joined = isSet ? await joinSet({ input, name }, near, options) : null;
  const resolve = joined?.resolve ?? (files && ((shard) => near.get(shard) || null));
  const openAs = (quantised) =>
    open(joined?.input ?? input, {
      ...options,
      quantised,
      name: joined ? "joined.index.json" : name,
      ...(resolve ? { resolve } : {}),
    });
  const stored = await openAs("stored");
  const found = await beside();
  const wants = decodes === IF_QUANTISED ? mayBeQuantised(stored.columns(), stored, found.config) : decodes;
  const decoded = wants ? await orClose(stored, openAs("decode")) : null;
  const id = next++;
  const entry = new Entry(stored, decoded, found);
  models.set(id, entry);
  const { model, isDecoded } = entry;
  const count = model.tensorCount;
  const known = count > FIRST ? { first: columnsOf(model.columns({ count: FIRST })) } : rest(entry);
  const part = completeness(stored, { name, files, joined });
  const form = { isDecoded, schemes: entry.schemes?.shown ?? null };
  return { id, count, ...known, ...form, lastByte, opened: now(), ...describe(stored), ...part };
}

// The result of a promise; if it fails, the model is closed.
async function orClose(model, promise) {
  try {
    return await promise;
  } catch (e) {
    await model.close();
    throw e;
  }
}

// What the page asks for once it shows the first rows: the columns of all tensors, and their sums.
function rest({ order: { columns }, stored, settings, isDecoded }) {
  const isQuantised = isDecoded || mayBeQuantised(columns, stored, settings.config);
  return { columns, mayBeQuantised: isQuantised, ...typeSums(columns) };
}

async function closeModel({ model }) {
  const entry = models.get(model);
  models.delete(model);
  if (!entry) return;
  await entry.stored.close();
  if (entry.isDecoded) await entry.model.close();
}

function entryOf(id) {
  const entry = models.get(id);
  if (!entry) throw new DOMException("the file is closed", "AbortError");
  return entry;
}

// Columns of an open model, for searches in other orders.
const arrange = ({ model, text, column, down, module }) =>
  entryOf(model).order.arrange(text, column, down, module);

const modules = ({ model, module }) => entryOf(model).tree.show(module);

const overview = ({ model }) => {
  const entry = entryOf(model);
  return overviewOf(entry, typeSums(entry.order.columns));
};

const map = ({ model, module }) => mapOf(entryOf(model).tree, module);

async function sample({ model, isWhole, first, runs }, { signal, progress }) {
  const sampled = entryOf(model).sampleOf(await dtypes());
  await sampled.run({ isWhole, first, runs, signal, onBatch: (batch) => progress({ batch }) });
}

// ---- tensors

const plainValue = (value) => (typeof value === "object" && value !== null ? "…" : String(value));

async function tensorFacts({ model, tensor }) {
  const entry = entryOf(model);
  const t = entry.model.tensorAt(tensor);
  return {
    name: t.name,
    scheme: entry.schemes?.texts.get(tensor) ?? null,
    layout: t.layout,
    tiedTo: entry.all.tiedTo[tensor],
    parts: t.parts.map((p) => ({ ...p })),
    decodes: t.decodes,
    dims: t.dims.map(String),
    attributes: [...t.attributes].map(([key, value]) => [key, plainValue(value)]),
  };
}

const find = ({ model, name }) => entryOf(model).model.find(name)?.id ?? null;

async function shownPart({ model, tensor, role }) {
  const t = entryOf(model).model.tensorAt(tensor);
  const byDefault = t.parts.some((p) => p.role === "data") ? "data" : t.parts[0]?.role;
  return [t, partOf(t, role || byDefault, await dtypes())];
}

async function surveyTensor(args, { signal, progress }) {
  const [t, part] = await shownPart(args);
  if (!part.decodes) return { part, figures: null };
  const figures = await survey({
    count: part.count,
    columns: part.columns,
    whole: args.whole,
    isPacked: part.encoding !== "raw",
    read: (from, to) => {
      signal.throwIfAborted();
      return numbersOf(t, part, from, to, signal);
    },
    onProgress: (done, total) => progress({ bytes: done, total }),
    onPicture: (first) => progress({ first: { part, figures: first } }),
  });
  return { part, figures };
}

async function slice({ model, tensor, role, ...place }, { signal }) {
  const [t, part] = await shownPart({ model, tensor, role });
  const read = (from, to) => numbersOf(t, part, from, to, signal);
  return sliceOf({ ...place, read }, signal);
}

async function pair({ a, b, ids }, { signal, progress }) {
  const side = async (model, id) => {
    if (id === null) return null;
    const [t, part] = await shownPart({ model, tensor: id });
    if (!part.decodes) return null;
    return { ...part, isPacked: part.encoding !== "raw", read: (from, to) => numbersOf(t, part, from, to, signal) };
  };
  const sides = [await side(a, ids[0]), await side(b, ids[1])];
  const found = await surveyPair(...sides, (bytes, total) => progress({ bytes, total }));
  const plain = (s) => s && { count: s.count, columns: s.columns, shape: s.shape, dtype: s.dtype, perElement: s.perElement };
  return { ...found, parts: sides.map(plain) };
}

const saving = (signal, progress, total) => {
  let done = 0;
  return { signal, progress: (n) => progress({ bytes: (done += n), total }) };
};

function npy({ model, tensor }, { signal, progress }) {
  const t = entryOf(model).model.tensorAt(tensor);
  return npyOf(t, saving(signal, progress, t.nbytes));
}

function safetensors({ model, ids }, { signal, progress }) {
  const { model: m } = entryOf(model);
  const tensors = ids ? Array.from(ids, (id) => m.tensorAt(id)) : [...m];
  return safetensorsOf(tensors, saving(signal, progress, tensors.reduce((sum, t) => sum + (t.nbytes || 0), 0)));
}

async function valuesOf(args, { signal }) {
  const [t, part] = await shownPart(args);
  return textsOf(t, part, args.from, args.to, signal);
}

// ---- texts

const metadata = ({ model }) => metadataRows(entryOf(model).stored.metadata);
const metadataValue = ({ model, key }) => valueText(entryOf(model).stored.metadata, key);

async function vocabulary({ model }, { signal }) {
  const v = await entryOf(model).stored.vocabulary({ signal });
  if (!v) return null;
  const tokens = new Array(v.count);
  for (let i = 0; i < v.count; i++) tokens[i] = v.token(i);
  return { tokens, special: { ...v.special } };
}

// ---- checks

const verify = ({ model, quick }, { signal, progress }) =>
  entryOf(model).stored.verify({ signal, quick, onProgress: progress });

const hash = ({ model }, { signal, progress }) =>
  entryOf(model).stored.hash({ signal, onProgress: progress });

async function diff({ a, b }, { signal, progress }) {
  const [first, second] = [entryOf(a).model, entryOf(b).model];
  const report = await first.diff(second, { signal, onProgress: progress });
  return compareRows(report, first, second);
}

const methods = {
  open: openModel,
  rest: ({ model }) => rest(entryOf(model)),
  close: closeModel,
  arrange,
  modules,
  overview,
  map,
  sample,
  tensor: tensorFacts,
  find,
  survey: surveyTensor,
  slice,
  npy,
  safetensors,
  pair,
  values: valuesOf,
  metadata,
  metadataValue,
  vocabulary,
  verify,
  hash,
  diff,
};

// ---- questions and answers

function failureOf(e) {
  const { name, message, status, rule, offset, tensor, httpStatus } = e;
  return {
    name: name || "Error",
    message: String(message),
    status,
    rule,
    offset,
    tensor,
    httpStatus,
  };
}

// Report the progress of a question, but not each of many small steps.
function reporter(id) {
  const LEAST = 40; // milliseconds between reports
  let last = -LEAST;
  return (progress) => {
    const time = performance.now();
    if (!progress.first && !progress.batch && time - last < LEAST) return;
    last = time;
    postMessage({ id, progress });
  };
}

async function answer({ id, method, args }) {
  const stop = new AbortController();
  running.set(id, stop);
  try {
    const result = await methods[method](args, {
      signal: stop.signal,
      progress: reporter(id),
    });
    postMessage({ id, result });
  } catch (e) {
    postMessage({ id, error: failureOf(e) });
  } finally {
    running.delete(id);
  }
}

// Get ready before a file is chosen; open() reports failures.
dtypes()
  .then(() => warmUp(() => next === 1 && !running.size))
  .then(() => postMessage({ ready: true }))
  .catch(() => {});

onmessage = ({ data }) => {
  if (data.cancel) running.get(data.id)?.abort(new DOMException("cancelled", "AbortError"));
  else answer(data);
};
