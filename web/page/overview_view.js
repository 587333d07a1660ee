// The overview of the page: what the worker knows about a model, and a sample of its values.

import { byId, element } from "./basics.js";
import { isCancelled } from "./client.js";
import { copyButton } from "./copying.js";
import { Overview } from "./overview.js";
import { showFailure, withProgress } from "./status.js";
import { MOST_TENSORS } from "./limits.js";
import { painted } from "./whole_model.js";

const button = (title, act) => {
  const made = element("button", { type: "button", class: "small" }, title);
  made.addEventListener("click", act);
  return made;
};

export class OverviewView {
  // to: { tensor(id), search(text), checks() } shows other views.  isLocal: reading costs no requests.
  constructor(client, model, { isLocal, to, commands }) {
    Object.assign(this, { client, model, isLocal, to, commands, figures: new Map(), stop: new AbortController() });
    this.sums = { read: 0, nan: 0, inf: 0, tensors: 0, none: 0, failed: 0, badTensors: 0, isRunning: false };
    this.differences = null;
    byId("panel-overview").replaceChildren(element("p", { class: "quiet" }, "Reading the index…"));
  }

  async show() {
    if (!(await this.model.whole)) return;
    try {
      const found = await this.client.ask("overview", { model: this.model.id }, { signal: this.stop.signal });
      this.draw(found);
      this.measure();
      if (this.isLocal) await this.sample(false);
    } catch (e) {
      if (!isCancelled(e)) showFailure(e);
    }
  }

  // The time until the overview can be seen, as that of the first row in inspector.js.
  async measure() {
    await painted();
    performance.measure("heft-overview", { start: Math.max(0, this.model.lastByte - performance.timeOrigin), end: performance.now() });
  }

  draw(found) {
    this.first = found.stacks.slice(0, 1).flatMap((s) => s.cells.flat(2)); // tensors of the cells that are shown
    const width = () => Math.max(320, byId("map").clientWidth);
    const into = element("div", { class: "overview" });
    byId("panel-overview").replaceChildren(into, copyButton(this.commands.overview()));
    this.overview = new Overview({
      ...found,
      into,
      isEmpty: !this.model.count,
      health: this.health(),
      buttons: (h) => this.buttons(h),
      measures: this.measures(),
      opened: (ids, name) => (ids.length === 1 ? this.to.tensor(ids[0]) : this.to.search(name)),
      map: {
        source: (module) => this.client.ask("map", { model: this.model.id, module }),
        opened: (p) => this.to.tensor(p.tensor),
        sizeOf: () => [width(), width() < 600 ? 440 : 360],
      },
    });
    let last = innerWidth;
    addEventListener("resize", () => {
      if (innerWidth === last || !byId("map")?.clientWidth || !this.overview.map?.content) return;
      last = innerWidth;
      this.overview.map.draw();
    }, { signal: this.stop.signal });
  }

  measures() {
    const { columns } = this.model;
    const of = (key) => (id) => {
      const f = this.figures.get(id);
      return f && (f.none || f.failed ? null : f[key]);
    };
    const bad = (id) => {
      const f = this.figures.get(id);
      return f && (f.none || f.failed ? null : f.nan + f.inf);
    };
    const all = [
      { id: "std", title: "Std deviation", join: "mean", value: of("std") },
      { id: "max", title: "Largest magnitude", join: "most", value: of("max") },
      { id: "nan", title: "NaN and infinite", join: "sum", isBad: true, value: bad },
      { id: "type", title: "Type", join: "text", value: (id) => columns.dtypeNames[columns.dtypes[id]] },
    ];
    if (this.differences)
      all.push({ id: "difference", title: "Difference", join: "most", value: (id) => (this.differences.has(id) ? this.differences.get(id) : 0) });
    return all;
  }

  // Differences to another model: greatest differences by id of the tensor; null where there is none.
  compared(differences) {
    this.differences = differences;
    this.overview?.remeasure(this.measures(), "difference");
  }

  // ---- values

  health() {
    const { model, sums } = this;
    return {
      values: { ...sums, all: model.elements, of: model.count - sums.none, tensors: sums.tensors },
      checksums: model.checksums,
      verified: model.verified,
      notices: model.notices.map((f) => f.severity),
    };
  }

  buttons({ values }) {
    const { isRunning, tensors, read, all } = values;
    const more = [];
    if (isRunning) more.push(element("span", { class: "quiet" }, `reading… ${this.percent()} %`));
    else {
      if (!tensors && !this.isLocal) more.push(button("Read a sample", () => this.sample(false)));
      if (read < all) more.push(button("Read all values", () => this.sample(true)));
    }
    if (this.sums.badTensors) more.push(button("Show them", () => this.to.search("nan:")));
    return {
      values: more,
      checksums: [...(this.model.verified ? [] : [button("Verify", () => this.to.checks(true))])],
      findings: this.model.notices.length ? [button("Show them", () => this.to.checks(false))] : [],
    };
  }

  percent() {
    return Math.floor((100 * this.figures.size) / Math.min(this.model.count, this.isWhole ? Infinity : MOST_TENSORS));
  }

  add(batch) {
    const { sums } = this;
    for (const f of batch) {
      this.figures.set(f.id, f);
      if (f.failed) sums.failed++;
      if (f.none || f.failed) sums.none++;
      else {
        sums.read += f.read;
        sums.nan += f.nan;
        sums.inf += f.inf;
        sums.tensors++;
        if (f.nan || f.inf) sums.badTensors++;
      }
    }
    this.changed();
  }

  changed() {
    this.model.looked = this.figures.size;
    this.overview?.arrived(this.health());
  }

  async sample(isWhole) {
    if (this.sums.isRunning) return;
    this.figures.clear();
    this.isWhole = isWhole;
    Object.assign(this.sums, { read: 0, nan: 0, inf: 0, tensors: 0, none: 0, failed: 0, badTensors: 0, isRunning: true });
    const ask = (signal, onProgress) =>
      this.client.ask("sample", { model: this.model.id, isWhole, first: this.first, runs: this.isLocal ? 4 : 1 }, {
        signal,
        onProgress: (p) => {
          if (p.batch) this.add(p.batch);
          onProgress?.({ bytes: this.sums.read * 4, total: this.model.elements * 4 });
        },
      });
    try {
      if (isWhole) await withProgress("Reading all values", ({ signal, onProgress }) => ask(signal, onProgress));
      else await ask(this.stop.signal);
    } finally {
      this.sums.isRunning = false;
      this.changed();
    }
  }

  close() {
    this.stop.abort();
  }
}
