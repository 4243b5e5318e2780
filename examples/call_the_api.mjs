// Call a running studio from JavaScript, and write the speech while it is being generated:
// node examples/call_the_api.mjs URL FILE, with Node 18 or newer and no packages.

import { createWriteStream } from "node:fs";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

const [url, path] = process.argv.slice(2);
const response = await fetch(`${url}/v1/audio/speech`, {
  method: "POST",
  headers: { "Content-Type": "application/json", Authorization: "Bearer one-of-STUDIO_API_KEYS" },
  body: JSON.stringify({ input: "Hello from the API.", voice: "clara", response_format: "mp3" }),
});
if (!response.ok) {
  throw new Error((await response.json()).error.message);
}
await pipeline(Readable.fromWeb(response.body), createWriteStream(path));
