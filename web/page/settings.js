// The config.json that belongs to a model: chosen together with it, or beside its address.  Runs in the worker.

const NAME = "config.json";
const MOST = 1 << 20; // bytes
const WAIT = 5000; // milliseconds: the first row waits for the settings

const tooLong = { config: null, problem: "is not read: it has more than 1 MiB" };

// A damaged companion is no reason to refuse the weights.
function parsed(text) {
  try {
    const config = JSON.parse(text);
    if (config && typeof config === "object" && !Array.isArray(config)) return { config };
  } catch {
    // Said below.
  }
  return { config: null, problem: "is ignored: it is not a JSON object" };
}

// Return { config, problem } of a file that may be missing.  problem: what the reader is told.
export async function settingsOf(file) {
  if (!file) return { config: null };
  return file.size > MOST ? tooLong : parsed(await file.text());
}

async function textOf(answer) {
  const reader = answer.body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (let bytes = 0; ; ) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    bytes += value.length;
    if (bytes > MOST) {
      reader.cancel().catch(() => {});
      return null;
    }
    text += decoder.decode(value, { stream: true });
  }
}

// The same for the file beside an address.
export async function settingsBeside(address, signal) {
  const stop = new AbortController();
  const late = setTimeout(() => stop.abort(), WAIT);
  signal?.addEventListener("abort", () => stop.abort());
  try {
    const answer = await fetch(new URL(NAME, address), { signal: stop.signal, referrerPolicy: "no-referrer", cache: "no-cache" });
    if (answer.status === 404 || answer.status === 410) return { config: null };
    if (!answer.ok) return { config: null, problem: `beside the address: HTTP status ${answer.status}` };
    const text = await textOf(answer);
    return text === null ? tooLong : parsed(text);
  } catch {
    return { config: null, problem: "beside the address cannot be read: there is none, or the server does not send it to this page" };
  } finally {
    clearTimeout(late);
  }
}
