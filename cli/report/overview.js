// The first view of a model: what it is, whether it is sound, where its bytes are, and its layers.

import { element } from "./basics.js";
import { healthLine } from "./health.js";
import { breakable, plainText } from "./names.js";
import { RoleMatrix } from "./role_matrix.js";
import { Treemap } from "./treemap.js";

function factList(facts) {
  return element("dl", { class: "about" }, ...facts.map(({ title, text, from, isKnown }) =>
    element("div", {}, element("dt", {}, title),
            element("dd", isKnown ? {} : { class: "quiet" }, ...breakable(plainText(text)),
                    ...(from ? [element("span", { class: "from" }, ...breakable(plainText(from)))] : [])))));
}

export class Overview {
  // isEmpty: there are no tensors.  facts: those of model_facts.js; health: what healthLine() takes; map: what Treemap takes, without
  // `into` and `path`; stacks and omitted: those of roles.js; measures and opened: what RoleMatrix takes.
  constructor({ into, facts, health, buttons, isEmpty, map, stacks, omitted, unseen, measures, opened }) {
    this.health = element("div");
    this.buttons = buttons;
    const picture = element("div", { id: "map", class: "map" });
    const path = element("nav", { id: "path", class: "path", "aria-label": "Module" });
    const matrix = (this.matrixBox = element("div", { class: "matrix-part" }));
    const section = (title, ...nodes) => element("section", { class: "part" }, element("h2", {}, title), ...nodes);
    const pictures = element("div", { class: `pictures-of-model ${stacks.length ? "two" : ""}` },
                             ...(isEmpty ? [] : [section("Where the bytes are", path, picture)]),
                             ...(stacks.length ? [section("Layers", matrix)] : []));
    into.replaceChildren(factList(facts), this.health, pictures);
    this.showHealth(health);
    if (!isEmpty) this.map = new Treemap({ into: picture, path, ...map });
    if (!stacks.length) return;
    this.matrix = new RoleMatrix({ into: matrix, stacks, measures, opened });
    const texts = [];
    if (omitted) texts.push(`${omitted.toLocaleString("en")} further ${omitted === 1 ? "group of layers is" : "groups of layers are"} not drawn.`);
    if (unseen) texts.push(`The names of ${unseen.toLocaleString("en")} further tensors were not looked at.`);
    if (texts.length) matrix.after(element("p", { class: "quiet" }, texts.join(" ")));
  }

  showHealth(health) {
    this.health.replaceChildren(healthLine(health, this.buttons?.(health)));
  }

  // Colour by other measures, one of which is `chosen`.
  remeasure(measures, chosen) {
    if (!this.matrix) return;
    const { stacks, opened } = this.matrix;
    this.matrix = new RoleMatrix({ into: this.matrixBox, stacks, measures, opened, chosenMeasure: chosen });
  }

  // Values of tensors have arrived.
  arrived(health) {
    this.showHealth(health);
    this.matrix?.paint();
  }
}
