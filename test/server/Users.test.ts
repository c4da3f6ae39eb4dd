/**
 * More than one user on one root. Clients are processes of other users: the kernel lets them in or not. Only root can make
 * such processes; for another user there is nothing to see.
 */
import { it } from "@effect/vitest"
import { Effect } from "effect"
import { chmodSync, chownSync, mkdirSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "vitest"
import { temporaryFolder } from "../support/Harness.ts"
import { askAs } from "../support/OtherUser.ts"
import { says } from "../support/ScriptedModel.ts"
import { connect, open, script, textOf, uid } from "./support/Served.ts"
import { lacks } from "../support/Parts.ts"

const group = 4242
const [member, stranger] = [
  { uid: 4001, gid: group },
  { uid: 4002, gid: 4003 }
]

/** A root that others can pass through. */
const passable = Effect.tap(temporaryFolder, (root) => Effect.sync(() => chmodSync(root, 0o711)))

const lab = { read: "group", write: "group", group } as const
const inLab = { scope: "shared", shared: "lab" }

describe.skipIf(lacks("root"))("users", () => {
  it.scopedLive("SO-81: a space's socket has the mode and the group of its space, and its members use the space", () =>
    Effect.gen(function* () {
      const root = yield* passable
      const served = yield* open({ root, serve: { shared: { lab } } })
      const own = served.sockets.find(({ space }) => space === undefined)?.path ?? ""
      const space = served.sockets.find(({ space }) => space === "lab")?.path ?? ""
      assert.strictEqual(space, join(root, "shared/lab/agent/build.sock"))
      const { gid, mode } = statSync(space)
      assert.deepStrictEqual([mode & 0o777, gid], [0o660, group])
      assert.strictEqual(statSync(own).mode & 0o777, 0o600)
      yield* script(served, ({ answer }) => answer(says("for all of us")))
      const frames = yield* askAs(member, space, { op: "send", id: "m1", input: "hi", ...inLab })
      assert.strictEqual(textOf(frames.find(({ type }) => type === "message")), "for all of us")
      const mine = yield* connect(own)
      yield* mine.ask({ op: "resume", ...inLab })
      assert.strictEqual(textOf((yield* mine.untilType("message")).at(-1)), "for all of us")
      assert.deepStrictEqual(yield* askAs(stranger, space, { op: "ping" }), [{ fault: "EACCES" }])
      assert.deepStrictEqual(yield* askAs(member, own, { op: "ping" }), [{ fault: "EACCES" }])
    })
  )

  it.scopedLive("SO-82: through a space's socket nothing else can be reached, whatever is asked", () =>
    Effect.gen(function* () {
      const root = yield* passable
      const served = yield* open({ root, serve: { shared: { lab, other: { ...lab } } } })
      const own = served.sockets.find(({ space }) => space === undefined)?.path ?? ""
      const space = served.sockets.find(({ space }) => space === "lab")?.path ?? ""
      const mine = yield* connect(own)
      yield* mine.ask({ op: "send", id: "p1", input: "private" })
      const [start] = yield* mine.untilType("start")
      const requests = [
        { op: "send", id: "a", input: "hi" },
        { op: "send", id: "b", input: "hi", scope: "temp" },
        { op: "send", id: "c", input: "hi", scope: "shared", shared: "other" },
        { op: "resume" },
        { op: "resume", scope: "shared", shared: "other" },
        { op: "cancel", id: "p1" },
        { op: "list", id: "d" },
        { op: "answer", id: "e", ask: `ask-${"0".repeat(32)}`, decision: "once" }
      ]
      const refused = yield* askAs(member, space, ...requests)
      assert.deepStrictEqual(
        refused.map(({ code, type }) => [type, code]),
        requests.map(() => ["error", "EACCES"])
      )
      const run = start?.["run"]
      const [cancelled, status] = yield* askAs(
        member,
        space,
        { op: "cancel", id: run, ...inLab },
        { op: "status", id: "s" }
      )
      assert.deepInclude(cancelled, { type: "error", code: "ENOENT" })
      assert.deepStrictEqual(status?.["runs"], [])
    })
  )

  it.scopedLive(
    "SO-80: in a common root each user has sockets in a home of its own, and spaces of others are theirs",
    () =>
      Effect.gen(function* () {
        const root = yield* temporaryFolder
        chmodSync(root, 0o1777)
        // Another user was here before, and owns a space.
        mkdirSync(join(root, "shared"))
        chmodSync(join(root, "shared"), 0o1777)
        mkdirSync(join(root, "shared/theirs"), { mode: 0o750 })
        chownSync(join(root, "shared/theirs"), member.uid, group)
        const served = yield* open({ root, serve: { shared: { lab, theirs: { ...lab } } }, files: {} })
        assert.deepStrictEqual(
          served.sockets.map(({ path }) => path.slice(root.length + 1)),
          [`home/${uid}/agent/build.sock`, "shared/lab/agent/build.sock"]
        )
        assert.strictEqual(statSync(join(root, `home/${uid}`)).mode & 0o777, 0o700)
        const mine = yield* connect(served.path)
        yield* mine.ask({ op: "send", id: "m1", input: "hi", scope: "shared", shared: "theirs" })
        assert.deepInclude(yield* mine.next, { type: "error", id: "m1", code: "EACCES" })
        yield* script(served, ({ answer }) => answer(says("ours")))
        const frames = yield* askAs(member, join(root, "shared/lab/agent/build.sock"), {
          op: "send",
          id: "m1",
          input: "hi",
          ...inLab
        })
        assert.strictEqual(textOf(frames.find(({ type }) => type === "message")), "ours")
      })
  )

  it.scopedLive(
    "SO-80: a root that another user owns is refused, and a home in a common one that is not this user's",
    () =>
      Effect.gen(function* () {
        const foreign = yield* temporaryFolder
        chownSync(foreign, member.uid, group)
        assert.match((yield* Effect.flip(open({ root: foreign }))).message, /belongs to (another )?user/)
        const common = yield* temporaryFolder
        chmodSync(common, 0o1777)
        mkdirSync(join(common, "home"))
        chmodSync(join(common, "home"), 0o1777)
        mkdirSync(join(common, `home/${uid}`))
        writeFileSync(join(common, `home/${uid}/trap`), "")
        chownSync(join(common, `home/${uid}`), member.uid, group)
        assert.match(String((yield* Effect.flip(open({ root: common }))).message), /belongs to|user/)
      })
  )
})
