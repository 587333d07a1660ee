// Addresses of the page's own files, the only scripts that a worker may be made of.

const policy = window.trustedTypes
  ? window.trustedTypes.createPolicy("heft-page", { createScriptURL: (url) => url })
  : { createScriptURL: (url) => url };

export function ownScript(name) {
  if (!/^[a-z_]+\.js$/.test(name)) throw new TypeError(`${name} is not a script of this page`);
  return policy.createScriptURL(new URL(name, import.meta.url).href);
}
