/** The nodes in the inspector, in headless Chromium; the store of the nodes is the test's, and says what a cluster would. */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Ref } from "effect"
import type { Browser } from "playwright-core"
import type { NodeReport } from "../../packages/log/src/domain/NodesReport.ts"
import { NodeStore } from "../../packages/log/src/store/NodeStore.ts"
import { bundled } from "../../packages/inspector/scripts/page.mjs"
import * as Inspector from "../../packages/inspector/src/Inspector.ts"
import * as ServedApi from "../server/http/support/ServedApi.ts"
import { runtime } from "../support/Harness.ts"
import { session } from "../support/Logs.ts"
import { lacks } from "../support/Parts.ts"
import { sharedBrowser } from "../watch/support/Chromium.ts"
import * as Sample from "./support/Sample.ts"
import * as ServedInspector from "./support/ServedInspector.ts"

let browser: Browser
beforeAll(async () => {
  browser = await sharedBrowser()
})

const act = <A>(use: () => Promise<A>): Effect.Effect<A> => Effect.promise(use)

/** Opens the inspector of a database with these nodes. */
const visit = Effect.fnUntraced(function* (nodes: Effect.Effect<ReadonlyArray<NodeReport>>) {
  const context = yield* Layer.build(runtime())
  const pages = Inspector.pages(yield* act(() => bundled()))
  const store = { ...Context.get(context, NodeStore), living: nodes }
  return yield* Effect.gen(function* () {
    const id = session()
    yield* Sample.store(id, Sample.rich("found"))
    const served = yield* ServedApi.serve({ pages })
    const visited = yield* Effect.provideService(ServedInspector.visit(browser), ServedApi.Served, served)
    return { id, ...visited }
  }).pipe(Effect.provideService(NodeStore, store), Effect.provide(context))
})

const idle: NodeReport = {
  address: "10.0.0.1:4311",
  workspaces: ["build"],
  running: 0,
  sessions: [],
  lagMs: 12,
  unindexed: 0,
  handedOver: 0,
  takenUp: 0,
  since: Date.UTC(2026, 10, 1),
  leaving: false
}

describe.skipIf(lacks("chromium"))("the nodes in the inspector", () => {
  it.scopedLive("IP-530: the nodes are shown with what they say, which is followed, and lead to their sessions", () =>
    Effect.gen(function* () {
      const said = yield* Ref.make<ReadonlyArray<NodeReport>>([idle])
      const { faults, id, page } = yield* visit(Ref.get(said))
      yield* act(() => page.getByRole("link", { name: "Nodes", exact: true }).click())
      const nodes = page.getByRole("region", { name: "Nodes" })
      const row = nodes.getByRole("row").filter({ hasText: idle.address })
      yield* act(() => row.filter({ hasText: "0 given, 0 taken" }).filter({ hasText: "build" }).waitFor())
      yield* Ref.set(said, [
        { ...idle, leaving: true, running: 3, sessions: [id], handedOver: 1, takenUp: 2, movedAt: Date.now() }
      ])
      yield* act(() => row.filter({ hasText: "leaves" }).filter({ hasText: "1 given, 2 taken, last" }).waitFor())
      yield* act(() => row.filter({ hasText: "and 2 more" }).waitFor())
      yield* act(() => row.getByRole("link").click())
      assert.include(page.url(), `#/sessions/${id}/transcript`)
      assert.deepEqual(faults, [])
    })
  )

  it.scopedLive("IP-530: without nodes the page says nothing of them", () =>
    Effect.gen(function* () {
      const asked = yield* Effect.makeLatch()
      const { faults, page } = yield* visit(Effect.as(asked.open, []))
      yield* asked.await
      yield* act(() => page.getByRole("navigation", { name: "Sessions" }).getByRole("link").first().waitFor())
      assert.strictEqual(yield* act(() => page.getByText("Nodes").count()), 0)
      yield* act(() => page.evaluate(`location.hash = "#/nodes"`))
      yield* act(() => page.getByText("Choose a session.").waitFor())
      assert.deepEqual(faults, [])
    })
  )
})
