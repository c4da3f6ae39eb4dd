import { assert, describe, it } from "@effect/vitest"
import { build } from "esbuild"
import { Effect, FastCheck } from "effect"
import { fileURLToPath } from "node:url"
import { wired } from "../../packages/models/src/internal/WireFetch.ts"

/** An answer of the web platform whose body arrives in exactly these pieces. */
const answerOf = (pieces: ReadonlyArray<Uint8Array>): typeof globalThis.fetch => {
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of pieces) controller.enqueue(piece)
      controller.close()
    }
  })
  return async () => new Response(body, { headers: { "content-type": "text/event-stream" } })
}

const read = (pieces: ReadonlyArray<Uint8Array>) =>
  Effect.promise(async () => {
    const seen: Array<unknown> = []
    const fetch = wired(answerOf(pieces), () => ({
      request: (body) => body,
      event: (event) => {
        seen.push(event)
        return event["drop"] === true ? [] : [event]
      }
    }))
    const response = await fetch("http://127.0.0.1/")
    return { seen, text: await response.text() }
  })

describe("the wire", () => {
  it.effect.prop(
    "MD-23: an answer reads the same wherever the network cuts it, with any line ends",
    [FastCheck.array(FastCheck.nat(200), { maxLength: 20 }), FastCheck.constantFrom("\n", "\r\n", "\r")],
    ([cuts, eol]) =>
      Effect.gen(function* () {
        const events = [{ type: "a", text: "grüße 🌍" }, { drop: true }, { type: "b", n: 1 }]
        const lines = events.flatMap((event) => ["event: x", `data: ${JSON.stringify(event)}`, ""])
        const bytes = new TextEncoder().encode(`: hello${eol}${eol}${lines.join(eol)}${eol}data: {"torn":`)
        const edges = [0, ...cuts.map((cut) => Math.min(cut, bytes.length)), bytes.length].sort((a, b) => a - b)
        const pieces = edges.slice(1).map((edge, index) => bytes.subarray(edges[index], edge))
        const { seen, text } = yield* read(pieces)
        assert.deepStrictEqual(seen, events)
        const kept = `event: a\ndata: ${JSON.stringify(events[0])}\n\nevent: b\ndata: ${JSON.stringify(events[2])}\n\n`
        assert.strictEqual(text, kept)
      })
  )
})

describe("cold start", () => {
  it.live("MD-9: no provider's library is loaded before a model of it is used", () =>
    Effect.gen(function* () {
      const entry = fileURLToPath(new URL("../../packages/models/src/index.ts", import.meta.url))
      const { metafile } = yield* Effect.promise(() =>
        build({
          entryPoints: [entry],
          bundle: true,
          splitting: true,
          format: "esm",
          platform: "node",
          conditions: ["@daybook/source"],
          outdir: "out",
          write: false,
          metafile: true,
          packages: "bundle",
          external: ["better-sqlite3", "sharp"],
          logLevel: "silent"
        })
      )
      const outputs = Object.entries(metafile.outputs)
      const first = outputs.find(([, output]) => output.entryPoint?.endsWith("packages/models/src/index.ts"))
      const seen = new Set<string>()
      const visit = (path: string): ReadonlyArray<string> => {
        if (seen.has(path)) return []
        seen.add(path)
        const output = metafile.outputs[path]
        const eager = output?.imports.filter((item) => item.kind === "import-statement") ?? []
        return [...Object.keys(output?.inputs ?? {}), ...eager.flatMap((item) => visit(item.path))]
      }
      const inputs = visit(first?.[0] ?? "")
      assert.isTrue(inputs.some((path) => path.endsWith("packages/models/src/Models.ts")))
      assert.deepStrictEqual(
        inputs.filter((path) => /@ai-sdk|ai-anthropic|ai-openai|undici|platform-node/.test(path)),
        []
      )
    })
  )
})
