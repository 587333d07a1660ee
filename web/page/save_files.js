// Tensors as files: NumPy arrays, and selections as safetensors.  Runs in the worker.

const CHUNK = 1 << 24; // bytes of one read
const MOST = 2 ** 31; // bytes of a file that is made here

const NPY = { bool: "|b1", u8: "|u1", i8: "|i1", u16: "<u2", i16: "<i2", u32: "<u4", i32: "<i4", u64: "<u8", i64: "<i8",
              f16: "<f2", f32: "<f4", f64: "<f8", c64: "<c8", c128: "<c16" };
const SAFETENSORS = { bool: "BOOL", u8: "U8", i8: "I8", u16: "U16", i16: "I16", u32: "U32", i32: "I32", u64: "U64", i64: "I64",
                      f16: "F16", bf16: "BF16", f32: "F32", f64: "F64", c64: "C64", f8_e4m3fn: "F8_E4M3", f8_e5m2: "F8_E5M2",
                      f8_e4m3fnuz: "F8_E4M3FNUZ", f8_e5m2fnuz: "F8_E5M2FNUZ", f8_e8m0: "F8_E8M0" };

const refused = (message) => Object.assign(new Error(message), { status: "unsupported" });

// The bytes of a tensor as parts of a Blob.  isCast: as 32-bit floats.
async function bytesOf(t, length, isCast, { signal, progress }) {
  const parts = [];
  const step = isCast ? CHUNK / 4 : CHUNK;
  const end = isCast ? length / 4 : length;
  for (let from = 0; from < end; from += step) {
    signal.throwIfAborted();
    const range = { from, to: Math.min(end, from + step), signal };
    const piece = isCast ? await t.f32(range) : await t.bytes(range);
    parts.push(new Blob([piece])); // the browser may keep it on the disk
    progress(piece.byteLength);
  }
  return parts;
}

// How a tensor is written: { dtype, isCast, length }, or null if it cannot be.
function planOf(t, names, asFloat) {
  if (t.layout !== "dense" || !t.parts.some((p) => p.role === "data") || t.nbytes === null) return null;
  if (names[t.dtype]) return { dtype: names[t.dtype], isCast: false, length: t.nbytes };
  return t.decodes ? { dtype: asFloat, isCast: true, length: 4 * t.elements } : null;
}

function npyHeader(descr, dims) {
  const shape = dims.length === 1 ? `(${dims[0]},)` : `(${dims.join(", ")})`;
  const text = `{'descr': '${descr}', 'fortran_order': False, 'shape': ${shape}, }`;
  const length = Math.ceil((10 + text.length + 1) / 64) * 64 - 10;
  const bytes = new Uint8Array(10 + length);
  bytes.set([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0]);
  new DataView(bytes.buffer).setUint16(8, length, true);
  bytes.set(new TextEncoder().encode(text.padEnd(length - 1) + "\n"), 10);
  return bytes;
}

// Return { blob, cast }: the file, and the element type that became f32, or null.
export async function npyOf(t, options) {
  const plan = planOf(t, NPY, "<f4");
  if (!plan) throw refused(`tensor '${t.name}': ${t.layout === "dense" ? `elements of type ${t.dtype}` : `the layout ${t.layout}`} cannot be a NumPy array`);
  if (plan.length > MOST) throw refused("the array is larger than 2 GiB: use the command");
  const parts = await bytesOf(t, plan.length, plan.isCast, options);
  return { blob: new Blob([npyHeader(plan.dtype, t.dims), ...parts]), cast: plan.isCast ? t.dtype : null };
}

function headerOf(list) {
  let at = 0;
  const pairs = list.map(({ t, plan }) => {
    const entry = { dtype: plan.dtype, shape: [], data_offsets: [at, (at += plan.length)] };
    // Dimensions past 2^53 keep their digits.
    return `${JSON.stringify(t.name)}:${JSON.stringify(entry).replace('"shape":[]', `"shape":[${t.dims.join(",")}]`)}`;
  });
  const text = new TextEncoder().encode(`{${pairs.join(",")}}`);
  const length = Math.ceil(text.length / 8) * 8;
  const bytes = new Uint8Array(8 + length).fill(0x20);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(length), true);
  bytes.set(text, 8);
  return [bytes, at];
}

const alignmentOf = ({ dtype }) => Number(/(\d+)(?=$|_)/.exec(dtype)?.[1] ?? 8);

// Tensors as one file: { blob, left, cast }: names of tensors that cannot be written, and of those that
// became 32-bit floats.  Wide elements come first, so that all are aligned.
export async function safetensorsOf(tensors, options) {
  const planned = tensors.map((t) => ({ t, plan: t.name === "__metadata__" ? null : planOf(t, SAFETENSORS, "F32") }));
  const list = planned.filter(({ plan }) => plan).sort((a, b) => alignmentOf(b.plan) - alignmentOf(a.plan));
  if (!list.length) throw refused("none of these tensors can be written as safetensors");
  const [header, total] = headerOf(list);
  if (total > MOST) throw refused("the tensors are larger than 2 GiB together: use the command, or choose fewer");
  const parts = [];
  for (const { t, plan } of list) parts.push(...(await bytesOf(t, plan.length, plan.isCast, options)));
  return {
    blob: new Blob([header, ...parts]),
    left: planned.filter(({ plan }) => !plan).map(({ t }) => t.name),
    cast: list.filter(({ plan }) => plan.isCast).map(({ t }) => t.name),
  };
}
