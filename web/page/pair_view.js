// The values of a tensor in two files, which are read when it is chosen.

import { element, percentText } from "./basics.js";
import { breakable, nameText } from "./names.js";
import { changeText, PairPictures } from "./pair_pictures.js";
import { shortName } from "./rows.js";
import { sheetHead } from "./sheet.js";

export class PairView {
  // back(): what gets the focus when the details are closed.
  constructor(client, a, b, { failed, back }) {
    Object.assign(this, { client, a, b, failed, back, pictures: new PairPictures() });
    this.node = element("div", { class: "detail pair", role: "region", "aria-label": "Values of both files", tabindex: "-1" },
                        element("p", { class: "quiet" }, "Choose a tensor to see its values in both files."));
  }

  async show(row) {
    this.stop?.abort();
    const { signal } = (this.stop = new AbortController());
    const title = element("h2", { class: "name code" }, ...breakable(shortName(nameText(row.name))));
    const about = element("p", { class: "quiet" }, changeText(row));
    const box = element("div", {}, element("p", { class: "quiet" }, "Reading values…"));
    this.node.replaceChildren(sheetHead(this.node, this.back()), title, about, box);
    try {
      const found = await this.client.ask("pair", { a: this.a.id, b: this.b.id, ids: row.ids }, {
        signal,
        onProgress: ({ bytes, total }) => (box.firstChild.textContent = `Reading values: ${percentText(bytes, total)}`),
      });
      box.replaceChildren(...this.pictures.content(found));
    } catch (e) {
      if (signal.aborted) return;
      box.replaceChildren(element("p", { class: "fault" }, "The values cannot be shown."));
      this.failed(e);
    }
  }
}
