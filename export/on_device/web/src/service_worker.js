// Keeps every file of this page, so that it works without a network once it has been loaded.
const VERSION = "VERSION"; // the export writes another one for each model, and then the browser takes the new files

const PAGE = ["./", "page.css", "page.js", "worker.js", "icon.svg", "manifest.webmanifest"];
const FRESH = { cache: "reload" }; // the browser's own cache may still have a file of the version before

const cacheName = `translate-${VERSION}`;

self.addEventListener("install", (event) => {
  event.waitUntil(caches.open(cacheName).then((cache) => cache.addAll(PAGE.map((url) => new Request(url, FRESH)))));
  self.skipWaiting();
});

self.addEventListener("activate", (event) => {
  event.waitUntil(
    (async () => {
      await self.clients.claim(); // first, since the page waits for it
      const old = (await caches.keys()).filter((name) => name.startsWith("translate-") && name !== cacheName);
      await Promise.all(old.map((name) => caches.delete(name)));
    })(),
  );
});

self.addEventListener("fetch", (event) => {
  if (event.request.method === "GET" && event.request.url.startsWith(self.registration.scope)) {
    event.respondWith(fromCache(event.request));
  }
});

async function fromCache(request) {
  const cache = await caches.open(cacheName);
  const kept = await cache.match(request, { ignoreSearch: true });
  if (kept) return kept;
  const response = await fetch(new Request(request, FRESH));
  if (response.ok) await cache.put(request, response.clone());
  return response;
}
