/** Method: nodes that have different workspaces; who runs a session is seen at the model that is asked. */
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { assert, beforeAll, it } from "@effect/vitest"
import { Effect, Schema, Struct } from "effect"
import { describe } from "vitest"
import { NodesReport } from "../../packages/log/src/domain/NodesReport.ts"
import { build } from "../cli/support/Bundle.ts"
import { place } from "../cli/support/Process.ts"
import { session } from "../support/Logs.ts"
import { lacks } from "../support/Parts.ts"
import { database, servedNode } from "./support/ServedNode.ts"

beforeAll(() => void build())

/** A folder on a machine. */
const folder = Effect.map(place, ({ root }) => {
  mkdirSync(join(root, "work"))
  return join(root, "work")
})

/** Two nodes. The second one has the workspace `build`. */
const withBuild = Effect.gen(function* () {
  const [url, directory] = [yield* database, yield* folder]
  const nodes = [servedNode(url), servedNode(url, ["--workspace", `build=${directory}`])] as const
  const [one, two] = yield* Effect.all(nodes, { concurrency: 2 })
  return { directory, one, two }
})

const readReport = Schema.decodeUnknown(NodesReport)

describe.skipIf(lacks("postgres"))("workspaces of nodes", () => {
  it.scopedLive(
    "CU-30: a session of a workspace runs on the nodes that have it, whichever node admits its prompts",
    () =>
      Effect.gen(function* () {
        const { directory, one, two } = yield* withBuild
        for (const _ of [1, 2, 3]) {
          const id = session()
          const made = yield* one.post("/sessions", { id, location: { directory, workspaceID: "build" } })
          assert.strictEqual(made.status, 201)
          yield* one.post(`/sessions/${id}/prompts`, { prompt: { text: "hello @notes.md" } })
          const turn = yield* two.model.next
          // The admitting node does not read a file of the same name on its machine.
          assert.include(JSON.stringify(turn.body.messages), "the workspace build is on another machine")
          yield* turn.text("hi")
          yield* turn.finish()
        }
      })
  )

  it.scopedLive("CU-31: a node refuses a folder that is outside of its workspace", () =>
    Effect.gen(function* () {
      const [url, directory] = [yield* database, yield* folder]
      const { here, post } = yield* servedNode(url, ["--workspace", `build=${directory}`])
      const outside = yield* post("/sessions", { location: { directory: here.cwd, workspaceID: "build" } })
      assert.strictEqual(outside.status, 400)
      assert.include(JSON.stringify(outside.body), "is not in the workspace build")
    })
  )

  it.scopedLive(
    "CU-32: a prompt that no node can run waits, says for what, and runs when a node with the workspace begins",
    () =>
      Effect.gen(function* () {
        const [url, directory, id] = [yield* database, yield* folder, session()]
        const one = yield* servedNode(url)
        yield* one.post("/sessions", { id, location: { directory, workspaceID: "gpu" } })
        yield* one.post(`/sessions/${id}/prompts`, { prompt: { text: "hello" } })
        const resumed = yield* one.post(`/sessions/${id}/resume`, {})
        assert.include(JSON.stringify(resumed.body), "a node with the workspace gpu")
        const report = yield* readReport(yield* one.get("/nodes"))
        assert.deepStrictEqual(report.waiting, [{ sessionID: id, workspaceID: "gpu" }])
        const told = (words: ReadonlyArray<string>) => one.here.run(words, { env: one.env })
        assert.include((yield* told(["sessions"])).stdout, "waiting for gpu")
        assert.include((yield* told(["doctor"])).stdout, "no node has the workspace gpu; daybook serve --node")
        const two = yield* servedNode(url, ["--workspace", `gpu=${directory}`])
        const turn = yield* two.model.next
        yield* turn.text("at last")
        yield* turn.finish()
        assert.deepStrictEqual((yield* readReport(yield* two.get("/nodes"))).waiting, [])
      })
  )

  it.scopedLive(
    "CU-33: a session that moves to a workspace of other nodes stops at the move, and its prompts run there",
    () =>
      Effect.gen(function* () {
        const [url, directory, id] = [yield* database, yield* folder, session()]
        const one = yield* servedNode(url)
        yield* one.post("/sessions", { id, location: { directory: one.here.cwd } })
        yield* one.post(`/sessions/${id}/prompts`, { prompt: { text: "go" } })
        const turn = yield* one.model.next
        yield* one.put(`/sessions/${id}/location`, { directory, workspaceID: "gpu" })
        yield* one.post(`/sessions/${id}/prompts`, { prompt: { text: "afterwards" }, delivery: "queue" })
        yield* turn.toolCall("one", "bash", { command: "echo one" })
        yield* turn.finish("tool_calls")
        const two = yield* servedNode(url, ["--workspace", `gpu=${directory}`])
        const who = yield* Effect.raceFirst(Effect.as(one.model.next, "one"), Effect.as(two.model.next, "two"))
        assert.strictEqual(who, "two")
      })
  )

  it.scopedLive(
    "CL-822, CU-34, HT-796: the nodes are listed with their workspaces and what runs there, until they end",
    () =>
      Effect.gen(function* () {
        const { directory, one, two } = yield* withBuild
        const id = session()
        yield* one.post("/sessions", { id, location: { directory, workspaceID: "build" } })
        yield* one.post(`/sessions/${id}/prompts`, { prompt: { text: "hello" } })
        yield* two.model.next
        const listed = Effect.gen(function* () {
          const { stdout } = yield* one.here.run(["nodes", "--json"], { env: one.env })
          return yield* Schema.decodeUnknown(Schema.parseJson(NodesReport))(stdout)
        })
        // A node says at intervals what runs there.
        const { nodes } = yield* Effect.repeat(listed, {
          until: ({ nodes }) => nodes.some(({ running }) => running === 1)
        })
        const facts = nodes.map((node) => Struct.omit(node, "since", "lagMs", "unindexed"))
        const nothing = { leaving: false, running: 0, sessions: [], workspaces: [], handedOver: 0, takenUp: 0 }
        assert.sameDeepMembers(facts, [
          { ...nothing, address: one.address },
          { ...nothing, address: two.address, running: 1, sessions: [id], workspaces: ["build"] }
        ])
        const { stdout } = yield* one.here.run(["nodes"], { env: one.env })
        assert.match(
          stdout,
          new RegExp(
            `^${two.address} +up +since .* +1 running +lag \\d+ ms +unindexed \\d+ +gave 0 took 0 +build\n  ${id}$`,
            "m"
          )
        )
        yield* two.process.signal("SIGINT")
        yield* two.process.ended
        assert.deepStrictEqual(
          (yield* listed).nodes.map(({ address }) => address),
          [one.address]
        )
      })
  )

  it.scopedLive("HT-797: the metrics of a node have its address", () =>
    Effect.gen(function* () {
      const one = yield* servedNode(yield* database)
      assert.include(yield* one.text("/metrics"), `node="${one.address}"`)
    })
  )

  it.scopedLive("HT-795, CL-824: servers with DAYBOOK_HTTP_TOKEN accept it, and doctor asks one for its health", () =>
    Effect.gen(function* () {
      const token = "of-both-servers-and-long-enough"
      const one = yield* servedNode(yield* database, [], { DAYBOOK_HTTP_TOKEN: token })
      assert.strictEqual(one.token, token)
      const asked = (url: string) => one.here.run(["doctor", "--health", url])
      const well = yield* asked(one.url)
      assert.strictEqual(well.code, 0)
      assert.include(well.stdout, `"status":"ok"`)
      yield* one.process.signal("SIGKILL")
      yield* one.process.ended
      const gone = yield* asked(one.url)
      assert.strictEqual(gone.code, 6)
      assert.match(gone.stderr, /^daybook: .* is not well: /)
    })
  )
})
