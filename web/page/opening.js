// Opens what the user drops, chooses or writes: files, folders, addresses, repositories of the hub.

import { byId, element, sizeText } from "./basics.js";
import { isHubAddress, resolveHub } from "./hub.js";
import { cut, nameText } from "./names.js";
import { besides, candidates } from "./openable.js";
import { isServed } from "./served.js";
import { clearFailure, withProgress } from "./status.js";
import { openWhole } from "./whole_model.js";

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
  // choosing(): the page shows where files are chosen.
  constructor(client, { opened, choosing }) {
    Object.assign(this, { client, opened, choosing });
  }

  // A model that is open, or undefined after a failure.
  async load(what) {
    const retry = { title: "Try again", act: () => this.use(what) };
    const whole = {
      title: "Download the whole file",
      act: () => this.use({ ...what, whole: 8 * 2 ** 30 }),
    };
    const name = cut(nameText(what.name));
    const model = await withProgress(
      `Opening ${name}`,
      (options) =>
        what.isSecond ? openWhole(this.client, what, options) : this.client.ask("open", what, options),
      { name, actionsOf: (e) => (e.rule === "web/no-ranges" ? [whole] : [retry]) },
    );
    return model && { ...model, shown: what.name };
  }

  // Open a model as the only one, or as B of a comparison.
  async use(what) {
    const model = await this.load({ ...what, given: undefined, handle: undefined });
    if (model) await this.opened(model, what);
    return Boolean(model);
  }

  // A file of the hub, or the main file of a repository or folder.
  async hub(text, isSecond) {
    const name = cut(nameText(text));
    const found = await withProgress(`Listing ${name}`, ({ signal }) => resolveHub(text, signal), {
      name,
      actionsOf: () => [{ title: "Try again", act: () => this.hub(text, isSecond) }],
    });
    if (!found) return;
    const [first] = found.choices;
    if (found.isClear || isSecond) await this.use({ input: first.url, name: first.name, isSecond, given: text });
    else
      this.offer(found.choices.map((c) => ({ name: c.path, act: () => this.use({ input: c.url, name: c.name, given: c.url }) })));
  }

  address(text, isSecond = false) {
    if (isHubAddress(text)) return this.hub(text, isSecond);
    const url = new URL(text, document.baseURI).href;
    if (isServed(text)) return this.use({ input: url, name: decodedName(url), isSecond, given: text, joins: true });
    return this.use({ input: url, name: decodedName(url), isSecond, given: url });
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

  // Several files may be meant: the user chooses.  found: { name, size, act() }, more: { title, act() }
  offer(found, more = []) {
    this.choosing();
    const MOST = 100;
    const buttonOf = (text, act) => {
      const button = element("button", { type: "button" }, text);
      button.addEventListener("click", act);
      return button;
    };
    const list = found.slice(0, MOST).map(({ name, size, act }) => {
      const text = size === undefined ? "" : " " + sizeText(size);
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
