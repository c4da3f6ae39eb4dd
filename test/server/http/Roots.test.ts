/** The folders that sessions of HTTP clients may work in. */
import { mkdirSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { runtime, temporaryFolder } from "../../support/Harness.ts"
import * as ServedApi from "./support/ServedApi.ts"
import { answer, post, Served } from "./support/ServedApi.ts"

it.scopedLive("HT-27: a session works only below a root, by the real path", () =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    const [root, below, other] = [join(folder, "root"), join(folder, "root", "below"), join(folder, "root-other")]
    for (const each of [root, below, other]) mkdirSync(each)
    symlinkSync(other, join(root, "link"))
    const served = yield* ServedApi.serve({ roots: [root] })
    const at = Effect.provideService(Served, served)
    const created = (directory: string) =>
      Effect.map(at(post("/sessions", { location: { directory } })), ({ body, status }) => {
        if (status === 400) assert.deepInclude(body, { _tag: "InvalidInput", field: "directory" })
        return status
      })
    assert.deepEqual(yield* Effect.forEach([root, below], created), [201, 201])
    const outside = [other, folder, join(root, "link"), join(root, "..", "root-other"), join(root, "absent"), "/", "."]
    for (const each of outside) assert.strictEqual(yield* created(each), 400, each)
    const named = yield* at(post("/sessions/named", { title: "x", location: { directory: other } }))
    assert.strictEqual(named.status, 400)
    const session = yield* at(post("/sessions", { id: "ses_moved", location: { directory: root } }))
    assert.strictEqual(session.status, 201)
    const put = (path: string, body: unknown) => at(answer(path, { method: "PUT", body: JSON.stringify(body) }))
    assert.strictEqual((yield* put("/sessions/ses_moved/location", { directory: other })).status, 400)
    assert.strictEqual((yield* put("/sessions/ses_moved/location", { directory: below })).status, 204)
    const placement = { address: { kind: "agent", name: "a", session: "s", scope: "private", uid: 1 }, root: other }
    const placed = yield* put("/sessions/ses_moved/placement", placement)
    assert.deepInclude(placed.body, { _tag: "InvalidInput", field: "directory" })
  }).pipe(Effect.provide(runtime()))
)
