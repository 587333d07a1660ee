// Keeps the page's own files, so that the page opens without a network.  Models are never kept, and
// requests for them are not touched.

const VERSION = "@VERSION@"; // a digest of the files below
const FILES = ["@FILES@"];
const CACHE = "heft-page-" + VERSION;

const addressOf = (name) => new URL(name, registration.scope).href;

self.addEventListener("install", (event) => {
  const fresh = FILES.map((name) => new Request(addressOf(name), { cache: "no-cache" }));
  event.waitUntil(
    caches
      .open(CACHE)
      .then((c) => c.addAll(fresh))
      .then(() => self.skipWaiting()),
  );
});

async function takeOver() {
  for (const name of await caches.keys())
    if (name.startsWith("heft-page-") && name !== CACHE) await caches.delete(name);
  await self.clients.claim();
}
self.addEventListener("activate", (event) => event.waitUntil(takeOver()));

const OWN = new Set(FILES.map(addressOf));

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = request.url.split(/[?#]/)[0];
  if (request.method !== "GET" || !OWN.has(url)) return;
  event.respondWith(caches.open(CACHE).then(async (c) => (await c.match(url)) || fetch(request)));
});
