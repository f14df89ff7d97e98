// Keeps every file of this page, so that it works without a network once it has been loaded.
const VERSION = "VERSION"; // the export writes that of its files, and when it changes the browser takes the new ones

const PAGE = ["./", "page.css", "page.js", "translator.js", "worker.js", "icon.svg", "manifest.webmanifest"];
const FRESH = { cache: "reload" }; // the browser's own cache may still have a file of the version before

const cacheName = `translate-${VERSION}`;

self.addEventListener("install", (event) => {
  event.waitUntil(caches.open(cacheName).then((cache) => cache.addAll(PAGE.map((url) => new Request(url, FRESH)))));
  self.skipWaiting();
});

self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

// The page says that it is ready: all files of this version are here, and those of others may go.
self.addEventListener("message", (event) => event.waitUntil(forgetOthers()));

self.addEventListener("fetch", (event) => {
  if (event.request.method === "GET" && event.request.url.startsWith(self.registration.scope)) {
    event.respondWith(answer(event));
  }
});

/** The file that was kept, or else the server's, which is kept beside; without a network that of an older version. */
async function answer(event) {
  const cache = await caches.open(cacheName);
  const kept = await cache.match(event.request, { ignoreSearch: true });
  if (kept) return kept;
  try {
    const response = await fetch(new Request(event.request, FRESH));
    if (response.ok) event.waitUntil(cache.put(event.request, response.clone()).catch(() => {})); // no room: not kept
    return response;
  } catch (error) {
    const older = await caches.match(event.request, { ignoreSearch: true });
    if (older) return older;
    throw error;
  }
}

async function forgetOthers() {
  if (self.registration.installing || self.registration.waiting) return; // a newer version is coming: not its files
  const others = (await caches.keys()).filter((name) => name.startsWith("translate-") && name !== cacheName);
  await Promise.all(others.map((name) => caches.delete(name)));
}
