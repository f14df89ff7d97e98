// Builds the page into dist/: three bundles, LiteRT's WebAssembly, and nothing that is fetched from elsewhere.
import { build } from "esbuild";
import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";

const WEBASSEMBLY = ["litert_wasm_internal", "litert_wasm_compat_internal"]; // with and without relaxed SIMD
const NODE_ALONE = ["fs", "module", "path", "url", "crypto", "app-root-path"]; // SentencePiece's build, outside a browser

await rm("dist", { recursive: true, force: true });
await mkdir("dist/wasm", { recursive: true });
await writeFile("dist/.nothing.js", "export default {};\n");
const bundle = (name, format, settings) =>
  build({ entryPoints: [`src/${name}.js`], outdir: "dist", bundle: true, minify: true, format, target: "es2022", legalComments: "eof", ...settings });
await bundle("translator", "esm");
await bundle("page", "esm", { external: ["./translator.js"] });
await bundle("worker", "iife", {
  // a module worker has no importScripts, which LiteRT.js needs
  alias: Object.fromEntries(NODE_ALONE.map((name) => [name, "./dist/.nothing.js"])),
  define: { "import.meta.url": "self.location.href" },
});
await rm("dist/.nothing.js");
const styles = await Promise.all(["../../../tfformer/look.css", "src/page.css"].map((path) => readFile(path, "utf8")));
await writeFile("dist/page.css", styles.join(""));
for (const name of ["index.html", "icon.svg", "manifest.webmanifest"]) {
  await cp(`src/${name}`, `dist/${name}`);
}
for (const name of WEBASSEMBLY.flatMap((name) => [`${name}.js`, `${name}.wasm`])) {
  await cp(`node_modules/@litertjs/core/wasm/${name}`, `dist/wasm/${name}`);
}
await cp("src/service_worker.js", "dist/service_worker.js"); // last: that it is there says that all of it is built
