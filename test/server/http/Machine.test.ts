/** Figures and shells over TCP. */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { measure } from "../../../packages/cli/src/host/StatsMeasure.ts"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import { clientOf } from "../../client/support/ServedClient.ts"
import { newSession, runtime, say, temporaryFolder } from "../../support/Harness.ts"
import { callParts, calls, says, ScriptedModel } from "../../support/ScriptedModel.ts"
import * as ServedApi from "./support/ServedApi.ts"
import { answer } from "./support/ServedApi.ts"

it.scopedLive("HT-55, HT-56, HT-504: a server that has no figures, shells or models says so", () =>
  Effect.gen(function* () {
    for (const [path, what] of [
      ["/stats", "stats"],
      ["/sessions/ses_1/stats", "stats"],
      ["/shells", "shells"],
      ["/models", "models"]
    ]) {
      const { body, status } = yield* answer(path ?? "")
      assert.strictEqual(status, 501)
      assert.deepInclude(body, { _tag: "NotServed", what })
    }
  }).pipe(Effect.provide(ServedApi.layer()))
)

it.scopedLive("HT-796: a server of a file has no nodes, and nothing waits for one", () =>
  Effect.gen(function* () {
    const { url } = yield* ServedApi.Served
    assert.deepStrictEqual(yield* (yield* clientOf(url)).nodes, { nodes: [], waiting: [] })
  }).pipe(Effect.provide(ServedApi.layer()))
)

it.scopedLive("HT-55: the figures of a session count its turns, calls and tokens, and no other's", () =>
  Effect.gen(function* () {
    const database = join(yield* temporaryFolder, "daybook.db")
    const stats = (what: Parameters<typeof measure>[1]) =>
      Effect.orDie(measure({ _tag: "File", path: database, name: database }, what))
    yield* Effect.gen(function* () {
      const { url } = yield* ServedApi.serve({
        machine: { stats: ({ exact, sessionID }) => stats({ exact, sessionID }) }
      })
      const [client, model, sessions] = [yield* clientOf(url), yield* ScriptedModel, yield* Sessions]
      const [one, two] = [yield* newSession(), yield* newSession()]
      yield* model.answer(calls(callParts("c1", "nothing", {}), callParts("c2", "nothing", {})))
      yield* model.answer(says("done"))
      yield* say(one.id, "Go.")
      yield* sessions.wait(one.id)
      const { metrics, sessions: counted } = yield* client.stats({ sessionID: one.id })
      assert.strictEqual(counted, 1)
      assert.deepInclude(metrics, { turns: 2, toolCalls: 2 })
      assert.deepInclude(metrics?.tokens, { input: 20, output: 10 })
      assert.deepInclude((yield* client.stats({ sessionID: two.id })).metrics, {
        turns: 0,
        toolCalls: 0,
        durationMs: 0
      })
      const all = yield* client.stats({ exact: true })
      assert.strictEqual(all.sessions, 2)
      assert.isUndefined(all.metrics)
    }).pipe(Effect.provide(runtime({ filename: database })))
  })
)

it.scopedLive("HT-504: models, agents and templates of the server are listed, and those of a permitted folder", () =>
  Effect.gen(function* () {
    const root = yield* temporaryFolder
    const project = join(root, "project")
    for (const [folder, text] of [
      ["agents", "---\ndescription: Reads.\nmode: subagent\n---\nOnly read."],
      ["templates", "---\ndescription: Mends a test.\n---\nMend $1."]
    ] as const) {
      mkdirSync(join(project, ".daybook", folder), { recursive: true })
      writeFileSync(join(project, ".daybook", folder, "mine.md"), text)
    }
    const model = { providerID: "p", id: "m" }
    const offered = { model, name: "M", source: "server", default: true } as const
    const { url } = yield* ServedApi.serve({
      models: Effect.succeed({ models: [offered], unreachable: [{ provider: "q", why: "it is away" }] }),
      roots: [project]
    })
    const client = yield* clientOf(url)
    assert.deepEqual(yield* client.models, {
      models: [offered],
      unreachable: [{ provider: "q", why: "it is away" }]
    })
    const names = (found: ReadonlyArray<{ readonly name: string }>) => found.map(({ name }) => name)
    assert.include(names(yield* client.agents()), "build")
    assert.notInclude(names(yield* client.agents()), "mine")
    assert.deepInclude(
      (yield* client.agents({ directory: project })).find(({ name }) => name === "mine"),
      { name: "mine", description: "Reads.", mode: "subagent", bash: "process" }
    )
    assert.deepEqual(yield* client.templates(), [])
    assert.deepEqual(yield* client.templates({ directory: project }), [{ name: "mine", description: "Mends a test." }])
    for (const list of [client.agents, client.templates])
      assert.deepInclude(yield* Effect.flip(list({ directory: root })), { _tag: "InvalidInput", field: "directory" })
  }).pipe(Effect.provide(runtime()))
)
