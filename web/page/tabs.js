// Views of which one is shown; arrow keys go from tab to tab.

import { byId, element } from "./basics.js";

export class Tabs {
  // views: { id, title, show() }; show() is called when a view is shown, and fills it once.
  // first: the view that is shown first.
  constructor(views, first, changed) {
    Object.assign(this, { views, current: null });
    this.list = byId("tabs");
    this.list.replaceChildren(...views.map((v, i) => this.tab(v, i)));
    for (const panel of document.querySelectorAll(".panel")) panel.hidden = true;
    this.select(first);
    this.changed = changed;
  }

  tab(view, i) {
    const tab = element(
      "button",
      {
        type: "button",
        role: "tab",
        id: "tab-" + view.id,
        "aria-controls": "panel-" + view.id,
      },
      view.title,
    );
    if (view.badge)
      tab.append(element("span", { class: "badge " + (view.badge.kind || "") }, view.badge.text));
    tab.title = `${view.title} (${i + 1})`;
    tab.addEventListener("click", () => this.select(view.id));
    tab.addEventListener("keydown", (e) => this.key(e, i));
    return tab;
  }

  key(event, i) {
    const last = this.views.length - 1;
    const to = {
      ArrowRight: i === last ? 0 : i + 1,
      ArrowLeft: i ? i - 1 : last,
      Home: 0,
      End: last,
    }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.select(this.views[to].id);
    this.list.children[to].focus();
  }

  select(id) {
    const view = this.views.find((v) => v.id === id);
    if (!view) return;
    for (const v of this.views) {
      const tab = byId("tab-" + v.id);
      tab.setAttribute("aria-selected", String(v === view));
      tab.tabIndex = v === view ? 0 : -1;
      byId("panel-" + v.id).hidden = v !== view;
    }
    this.current = id;
    if (!view.isShown) {
      view.isShown = true;
      view.show?.();
    }
    this.changed?.(id);
  }
}
