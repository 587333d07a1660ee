// Opens what the user drops, chooses or writes: files, folders, addresses, repositories of the hub.

import { byId, element, sizeText } from "./basics.js";
import { hubAddress, isHubAddress, resolveHub } from "./hub.js";
import { cut, nameText } from "./names.js";
import { besides, candidates } from "./openable.js";
import { isServed, nameForCommands, servedNames } from "./served.js";
import { clearFailure, showFailure, withProgress } from "./status.js";
import { openWhole } from "./whole_model.js";

const OWN_COMPUTER = /^(localhost|127\.0\.0\.1)(:\d+)?\//i;
const READ = /^(https?|data|blob):/i;
const SERVER = /^[\w-]+(\.[\w-]+)+(:\d+)?\//;

// An address as browsers write it, also without its scheme; null: it is none.
function addressOf(text) {
  const given = text.trim();
  const scheme = OWN_COMPUTER.test(given) ? "http://" : SERVER.test(given) ? "https://" : "";
  const whole = scheme + given;
  try {
    return new URL(whole).href;
  } catch {
    return null;
  }
}

const nameOfAddress = (url) => decodeURIComponent(new URL(url).pathname.split("/").pop() || url);

function decodedName(url) {
  try {
    return nameOfAddress(url);
  } catch {
    return url;
  }
}

export class Opening {
  // opened(model, what): a model is open; what: { input, name, files, isSecond, given }.
  // choosing(): the page shows where files are chosen.  secondForm(): whether a second model is decoded.
  constructor(client, { opened, choosing, secondForm }) {
    Object.assign(this, { client, opened, choosing, secondForm });
  }

  // A model that is open, or undefined after a failure.
  async load(what) {
    const question = { ...what, given: undefined, handle: undefined };
    const retry = { title: "Try again", act: () => this.use(what) };
    const whole = {
      title: "Download the whole file",
      act: () => this.use({ ...what, whole: 8 * 2 ** 30 }),
    };
    const stored = { title: "Open it as stored", act: () => this.use({ ...what, decodes: false }) };
    const name = cut(nameText(what.name));
    const model = await withProgress(
      `Opening ${name}`,
      (options) =>
        what.isSecond ? openWhole(this.client, question, options) : this.client.ask("open", question, options),
      { name, actionsOf: (e) => [e.rule === "web/no-ranges" ? whole : retry, ...(what.decodes ? [stored] : [])] },
    );
    return model && { ...model, shown: what.name, source: nameForCommands(what) };
  }

  // Open a model as the only one, or as B of a comparison.
  async use(what) {
    const decodes = what.decodes ?? (what.isSecond ? this.secondForm() : false);
    const model = await this.load({ ...what, decodes });
    if (model) await this.opened(model, what);
    return Boolean(model);
  }

  // A file of the hub, or the main file of a repository or folder.
  async hub(text, isSecond, decodes) {
    const name = cut(nameText(text));
    const found = await withProgress(`Listing ${name}`, ({ signal }) => resolveHub(text, signal), {
      name,
      actionsOf: () => [{ title: "Try again", act: () => this.hub(text, isSecond, decodes) }],
    });
    if (!found) return;
    const [first] = found.choices;
    if (found.isClear || isSecond) await this.use({ input: first.url, name: first.name, isSecond, decodes, given: hubAddress(text) });
    else
      this.offer(found.choices.map((c) => ({ ...c, name: c.path, act: () => this.use({ input: c.url, name: c.name, decodes, given: hubAddress(c.url) }) })));
  }

  // decodes: quantised tensors are shown decoded; undefined: as the first model is.
  address(text, isSecond = false, decodes = undefined) {
    if (isServed(text)) return this.served(text, isSecond, decodes);
    if (isHubAddress(text)) return this.hub(text, isSecond, decodes);
    const url = addressOf(text);
    const why = !url ? `${text} is no address` : READ.test(url) ? "" : `${text} is not an address that pages can read`;
    if (why) return showFailure({ status: "argument", rule: url ? "web/scheme" : "web/address", message: why });
    return this.use({ input: url, name: decodedName(url), isSecond, decodes, given: url });
  }

  // A file that heft view serves, by its path.
  async served(path, isSecond, decodes) {
    const input = new URL(path, document.baseURI).href;
    const names = await servedNames(path, decodedName(input));
    return this.use({ input, isSecond, decodes, given: path, joins: true, ...names });
  }

  file(file, files, isSecond, handle) {
    const near = besides(file, files);
    return this.use({ input: file, name: file.name, files: near.length > 1 ? near : undefined, isSecond, handle });
  }

  // Two models: the first one, and the second one beside it.
  async pair([a, b], files) {
    if (await this.file(a, files, false)) await this.file(b, files, true);
  }

  // handle: what opens a single file again in a later visit.
  files(files, { isSecond = false, isDrop = false, handle } = {}) {
    clearFailure();
    if (!files.length) return;
    const found = candidates(files);
    const isClear = found.length === 1 || /index\.json$/i.test(found[0].name);
    if (isClear || isSecond) return this.file(found[0], files, isSecond, handle);
    if (isDrop && found.length === 2) return this.pair(files.filter((f) => found.includes(f)), files);
    const both = found.length === 2 ? [{ title: "Compare both", act: () => this.pair(found, files) }] : [];
    const choices = found.map((file) => ({ name: file.name, size: file.size, act: () => this.file(file, files, false) }));
    this.offer(choices, both);
  }

  // Several files may be meant: the user chooses.  found: { name, size, note, act() }, more: { title, act() }
  offer(found, more = []) {
    this.choosing();
    const MOST = 100;
    const buttonOf = (text, act) => {
      const button = element("button", { type: "button" }, text);
      button.addEventListener("click", act);
      return button;
    };
    const list = found.slice(0, MOST).map(({ name, size, note, act }) => {
      const text = [size === undefined ? "" : sizeText(size), note ?? ""].filter(Boolean).map((s) => " " + s).join(",");
      return element("li", {}, buttonOf(cut(nameText(name)), act), element("span", { class: "quiet" }, text));
    });
    const rest = found.length - list.length;
    byId("candidates").replaceChildren(
      element("p", {}, "Which file?"),
      element("ul", {}, ...list),
      ...(rest ? [element("p", { class: "quiet" }, `${rest.toLocaleString("en")} further files are not listed.`)] : []),
      ...more.map(({ title, act }) => element("p", {}, buttonOf(title, act))),
    );
    byId("candidates").hidden = false;
    byId("candidates").querySelector("button").focus();
  }
}
