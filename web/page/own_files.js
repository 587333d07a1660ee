// Addresses of the page's own files, the only scripts that a worker may be made of.

const policy = window.trustedTypes
  ? window.trustedTypes.createPolicy("heft-page", { createScriptURL: (url) => url })
  : { createScriptURL: (url) => url };

// The page as one file has its scripts inside.
const inside = (name) => document.querySelector(`script[data-name="${name}"]`);
export const isOneFile = Boolean(inside("model_worker.js"));

export function ownScript(name) {
  if (!/^[a-z_]+\.js$/.test(name)) throw new TypeError(`${name} is not a script of this page`);
  if (isOneFile)
    return policy.createScriptURL(URL.createObjectURL(new Blob([inside(name).textContent], { type: "text/javascript" })));
  return policy.createScriptURL(new URL(name, import.meta.url).href);
}
