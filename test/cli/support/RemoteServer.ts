/** A server of a place, and the words that name it in a command. */
import { Effect, Schema } from "effect"
import type { Place } from "./Process.ts"

const Ready = Schema.parseJson(Schema.Struct({ http: Schema.Struct({ url: Schema.String, inspector: Schema.String }) }))

/** Serves the place's sessions over HTTP until the scope closes; returns `--server` and `--token`. */
export const serveAt = Effect.fnUntraced(function* (here: Place, env: Readonly<Record<string, string>> = {}) {
  const server = yield* here.start(["serve", "--json", "--show-token", "--http", "127.0.0.1:0"], { env })
  const { http } = yield* Schema.decodeUnknown(Ready)(yield* server.until("stdout", (text) => text.includes("\n")))
  return ["--server", http.url, "--token", http.inspector.split("#token=")[1] ?? ""]
})
