import type { Input, Model } from "@libheft/heft";

/**
 * `<heft-inspector src="model.safetensors">` lists the tensors of a model, with search, and the statistics of the one that
 * is chosen. Importing this module defines the element. A page's content security policy needs what the package needs.
 *
 * Events: "load" when a model is open; "error" with the HeftError as `detail`.
 */
export class HeftInspector extends HTMLElement {
    /** What `open()` takes, instead of the address in `src`; null: none. */
    source: Input | null;
    /** The model that is open, or null. It is closed when the element is removed or opens another one. */
    readonly model: Model | null;
}

declare global {
    interface HTMLElementTagNameMap {
        "heft-inspector": HeftInspector;
    }
}
