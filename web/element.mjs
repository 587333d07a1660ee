/** <heft-inspector src="model.safetensors">: the tensors of a model, for any page. */
import { open } from "./heft.mjs";

const MOST = 500; // rows of the list
const SHOWN = 12; // values of a tensor
const STYLE = `
:host { display: block; border: 1px solid #8886; border-radius: 0.5rem; padding: 0.75rem; font: 14px/1.45 system-ui, sans-serif;
  color-scheme: light dark; overflow-wrap: anywhere; }
.title { margin: 0 0 0.5rem; font-weight: 600; }
input { box-sizing: border-box; width: 100%; padding: 0.4rem 0.6rem; font: inherit; }
ul { max-height: 20rem; margin: 0.5rem 0; padding: 0; overflow: auto; list-style: none; }
button { display: block; width: 100%; padding: 0.35rem 0.5rem; border: 0; border-radius: 0.3rem; background: none; color: inherit;
  font: inherit; text-align: start; cursor: pointer; }
button:hover, button[aria-pressed="true"] { background: #8883; }
button span { opacity: 0.75; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.1rem 1rem; margin: 0.5rem 0 0; }
dd { margin: 0; font-variant-numeric: tabular-nums; }
.fault { color: light-dark(#b3261e, #ff8a80); }`;

const Base = globalThis.HTMLElement ?? class {};

/** Text of a model never becomes HTML, and characters that control or reverse text are escaped. */
const safe = text => String(text).replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, c => `\\u{${c.codePointAt(0).toString(16)}}`);

function node(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes))
        made.setAttribute(key, value);
    made.append(...children);
    return made;
}

const UNITS = ["bytes", "KiB", "MiB", "GiB", "TiB"];

function sizeText(n) {
    if (!(n >= 0))
        return "size not known";
    if (n === 1)
        return "1 byte";
    const i = n < 1024 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log2(n) / 10));
    return `${i ? (n / 1024 ** i).toFixed(1) : n} ${UNITS[i]}`;
}

const numberText = v => v === null ? "–" : Number.isInteger(v) ? v.toLocaleString("en") : String(Number(v.toPrecision(6)));

/**
 * Attribute `src`: an address. Property `source`: anything that open() takes, instead of an address. Property `model`: the
 * open model, or null. Events: "load", and "error" with the HeftError as `detail`.
 */
export class HeftInspector extends Base {
    static observedAttributes = ["src"];
    #source = null;
    #turn = 0;
    #stop = null; // ends the reading of the tensor that was chosen before
    model = null;

    constructor() {
        super();
        this.attachShadow({ mode: "open" });
        const sheet = new CSSStyleSheet();
        sheet.replaceSync(STYLE);
        this.shadowRoot.adoptedStyleSheets = [sheet];
    }

    get source() { return this.#source; }
    set source(source) {
        this.#source = source;
        if (this.isConnected)
            this.#open(source);
    }

    connectedCallback() {
        const source = this.#source ?? this.getAttribute("src");
        if (source)
            this.#open(source);
    }

    disconnectedCallback() {
        this.#turn++;
        this.#close();
    }

    attributeChangedCallback(_, before, src) {
        if (this.isConnected && src && src !== before)
            this.source = null, this.#open(src);
    }

    #close() {
        this.#stop?.abort();
        this.model?.close();
        this.model = null;
    }

    async #open(source) {
        if (!source)
            return;
        const turn = ++this.#turn;
        this.#close();
        this.shadowRoot.replaceChildren(node("p", { role: "status" }, "Opening…"));
        try {
            const model = await open(source);
            if (turn !== this.#turn) {
                await model.close();
                return;
            }
            this.model = model;
            this.#show(model);
            this.dispatchEvent(new Event("load"));
        } catch (e) {
            if (turn !== this.#turn)
                return;
            this.#fail(e);
        }
    }

    #fail(e) {
        this.shadowRoot.replaceChildren(node("p", { class: "fault", role: "alert" }, safe(e.message)));
        this.dispatchEvent(new CustomEvent("error", { detail: e }));
    }

    #show(model) {
        const c = this.columns = model.columns();
        const sum = values => values.reduce((total, v) => total + (v || 0), 0);
        const about = [`${model.format}${model.version ? ` ${model.version}` : ""}`, `${c.count.toLocaleString("en")} ${c.count === 1 ? "tensor" : "tensors"}`,
                       `${sum(c.elements).toLocaleString("en")} parameters`, sizeText(sum(c.nbytes))];
        const search = node("input", { type: "search", placeholder: "Search", "aria-label": "Search tensors" });
        search.addEventListener("input", () => this.#list(search.value));
        this.list = node("ul", { "aria-label": "Tensors" });
        this.count = node("p", { role: "status" });
        this.detail = node("div", { role: "region", "aria-label": "Tensor" });
        this.shadowRoot.replaceChildren(node("p", { class: "title" }, safe(model.name ?? "model")), node("p", {}, about.join(", ")),
                                        search, this.list, this.count, this.detail);
        this.#list("");
    }

    #list(text) {
        const c = this.columns, words = text.toLowerCase().split(/\s+/).filter(Boolean), rows = [];
        let hits = 0;
        for (let i = 0; i < c.count; i++) {
            const name = c.name(i), all = `${name} ${c.dtypeNames[c.dtypes[i]]}`.toLowerCase();
            if (words.every(w => all.includes(w)) && ++hits <= MOST)
                rows.push(this.#row(i, name));
        }
        this.list.replaceChildren(...rows);
        const more = hits > MOST ? `; the first ${MOST} are listed, search for others` : "";
        this.count.textContent = `${hits.toLocaleString("en")} of ${c.count.toLocaleString("en")} tensors${more}`;
    }

    #row(i, name) {
        const c = this.columns, shape = [...c.dims.subarray(i ? c.dimEnds[i - 1] : 0, c.dimEnds[i])];
        const row = node("button", { type: "button" }, safe(name) + " ",
                         node("span", {}, `${c.dtypeNames[c.dtypes[i]]} [${shape.join(", ")}], ${sizeText(c.nbytes[i])}`));
        row.addEventListener("click", () => this.#choose(i, row));
        return node("li", {}, row);
    }

    async #choose(i, row) {
        for (const other of this.list.querySelectorAll("button"))
            other.setAttribute("aria-pressed", String(other === row));
        this.detail.replaceChildren(node("p", {}, "Reading values…"));
        const { model, detail } = this;
        this.#stop?.abort();
        const { signal } = this.#stop = new AbortController();
        try {
            const t = model.tensorAt(i), facts = [];
            if (t.decodes && t.layout === "dense") {
                const s = await t.stats({ signal }), first = await t.values({ to: Math.min(SHOWN, t.elements), signal });
                facts.push(["Minimum", numberText(s.min)], ["Maximum", numberText(s.max)], ["Mean", numberText(s.mean)],
                           ["Std deviation", numberText(s.std)], ["NaN, infinite", `${s.nan}, ${s.inf}`],
                           ["First values", Array.from(first, String).join(", ")]);
            } else
                facts.push(["Values", `not decoded: ${t.layout === "dense" ? t.dtype : t.layout}`]);
            if (!signal.aborted)
                detail.replaceChildren(node("dl", {}, ...facts.flatMap(([k, v]) => [node("dt", {}, k), node("dd", {}, safe(v))])));
        } catch (e) {
            if (!signal.aborted)
                detail.replaceChildren(node("p", { class: "fault", role: "alert" }, safe(e.message)));
        }
    }
}

if (globalThis.customElements && !customElements.get("heft-inspector"))
    customElements.define("heft-inspector", HeftInspector);
