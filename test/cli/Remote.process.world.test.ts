/** `daybook --server` as processes: verbs over a server beside the same verbs on its database. */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { build } from "./support/Bundle.ts"
import { place } from "./support/Process.ts"

beforeAll(() => void build())

const Ready = Schema.parseJson(Schema.Struct({ http: Schema.Struct({ url: Schema.String, inspector: Schema.String }) }))

/** A server on a free port, and how commands run over it. */
const served = Effect.gen(function* () {
  const here = yield* place
  const server = yield* here.start(["serve", "--json", "--show-token", "--http", "127.0.0.1:0"])
  const { http } = yield* Schema.decodeUnknown(Ready)(yield* server.until("stdout", (text) => text.includes("\n")))
  const token = http.inspector.split("#token=")[1] ?? ""
  const over = (...words: ReadonlyArray<string>) => here.run(["--server", http.url, "--token", token, ...words])
  return { here, over, token, url: http.url }
})

describe("--server", () => {
  it.scopedLive("CL-303: a reading verb prints over a server what it prints on the database, byte for byte", () =>
    Effect.gen(function* () {
      const { here, over } = yield* served
      const prompted = yield* over("prompt", "--session", "first", "Say hello.")
      assert.strictEqual(prompted.code, 0, prompted.stderr)
      assert.notStrictEqual(prompted.stdout, "")
      yield* over("prompt", "--session", "first", "--no-run", "Later.")
      for (const words of [
        ["events", "--json"],
        ["events", "first", "--after", "3"],
        ["sessions"],
        ["sessions", "--json"],
        ["messages", "--json"],
        ["messages", "first"],
        ["show"],
        ["tree", "--json"],
        // The local one brings the index up to date.
        ["search", "hello"],
        ["history"]
      ]) {
        const [local, remote] = [yield* here.run(words), yield* over(...words)]
        assert.strictEqual(remote.stdout, local.stdout, words.join(" "))
        assert.deepEqual([remote.code, remote.stderr], [local.code, local.stderr], words.join(" "))
        assert.notStrictEqual(local.stdout, "")
      }
    })
  )

  it.scopedLive(
    "CL-303: verbs that change sessions do so over a server, with the token and the address of the environment",
    () =>
      Effect.gen(function* () {
        const { here, token, url } = yield* served
        const env = { DAYBOOK_SERVER: url, DAYBOOK_TOKEN: token }
        const json = (yield* here.run(["prompt", "--json", "--id", "msg_asked", "--session", "one", "hello"], { env }))
          .stdout
        assert.include(json, "session.next.activity.settled")
        for (const words of [
          ["rename", "one", "two"],
          ["label", "two", "msg_asked", "the question"],
          ["interrupt", "two"],
          ["compact", "--no-wait", "two"],
          ["resume", "two"]
        ]) {
          const { code, stderr } = yield* here.run(words, { env })
          assert.strictEqual(code, 0, `${words.join(" ")}: ${stderr}`)
        }
        assert.include((yield* here.run(["sessions"])).stdout, "two")
        assert.strictEqual((yield* here.run(["remove", "--yes", "two"], { env })).code, 0)
        assert.strictEqual((yield* here.run(["sessions"])).stdout, "")
      })
  )

  it.scopedLive("CL-304: what a server does not offer, and a server that does not answer, are said in a sentence", () =>
    Effect.gen(function* () {
      const { here, over, url } = yield* served
      for (const words of [["doctor"], ["prune"], ["backup", "copy.db"], ["agents"], ["trust"]]) {
        const { code, stderr } = yield* over(...words)
        assert.strictEqual(code, 2, words.join(" "))
        assert.include(stderr, "needs the database", words.join(" "))
      }
      for (const [words, code, says] of [
        [["--server", url, "sessions"], 2, "needs a token"],
        [["--server", "nowhere", "--token", "t", "sessions"], 2, "an address such as"],
        [["--server", url, "--token", "wrong", "sessions"], 2, "a valid token"],
        [["--server", "http://127.0.0.1:9999", "--token", "t", "sessions"], 6, "cannot be reached"]
      ] as const) {
        const ended = yield* here.run(words)
        assert.deepEqual([ended.code, ended.stdout], [code, ""], ended.stderr)
        assert.include(ended.stderr, says)
      }
    })
  )
})
