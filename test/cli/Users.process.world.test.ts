/**
 * Two users on one common root, each with a server, a database and a configuration of their own: real processes with two
 * uids, and the offline model. Only root can start them.
 */
import { assert, describe, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { chmodSync, chownSync, lstatSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { askAs, type User } from "../support/OtherUser.ts"
import { type Frame } from "./support/Client.ts"
import { jsonLines, place, type Place, type Running } from "./support/Process.ts"
import { everyPath } from "./support/SessionTree.ts"
import { lacks } from "../support/Parts.ts"

const team = 4_242
const first: User = { uid: 65_533, gid: team }
const second: User = { uid: 65_534, gid: team }
const stranger: User = { uid: 65_532, gid: 65_532 }

const space = (name: string, write: string) =>
  `  ${name}:\n    read: group\n    write: ${write}\n    group: ${team}\n    agents: [build]\n`
const spaces = new Map([
  [first, space("lab", "group") + space("desk", "owner")],
  [second, space("lab", "group") + space("den", "group")]
])

const said = (text: string) => `It was asked: ${JSON.stringify(text)}.`
const inSpace = (shared: string) => ({ scope: "shared", shared })
const send = (id: string, input: string, more: Frame = {}) => ({ op: "send", id, input, ...more })
const last = (frames: ReadonlyArray<Frame>) => frames.at(-1)

const make = Effect.gen(function* () {
  const here: Place = yield* place
  chmodSync(here.root, 0o755)
  const root = join(here.root, "ctx")
  mkdirSync(root)
  chmodSync(root, 0o1777)
  for (const [user, shared] of spaces) {
    const configuration = join(here.root, String(user.uid), ".config", "daybook")
    mkdirSync(configuration, { recursive: true })
    writeFileSync(join(configuration, "config.yaml"), `shared:\n${shared}`)
    const home = join(here.root, String(user.uid))
    chmodSync(home, 0o700)
    for (const path of [home, ...everyPath(home)]) chownSync(path, user.uid, user.gid)
  }
  const as = (user: User) => {
    const home = join(here.root, String(user.uid))
    const env = { HOME: home, DAYBOOK_ROOT: root, DAYBOOK_DB: join(home, "data", "daybook.sqlite") }
    return { ...user, cwd: here.root, env }
  }
  const ownSocket = ({ uid }: User) => join(root, `home/${uid}/agent/build.sock`)
  const serving = Effect.fnUntraced(function* (user: User, words: ReadonlyArray<string>) {
    const server: Running = yield* here.start(["serve", "--agent", "build", ...words], as(user))
    yield* server.until("stdout", (text) => text.includes("ready"))
    const own = yield* askAs(user, ownSocket(user), send("p1", `private of ${user.uid}`))
    assert.deepInclude(last(own), { type: "done", status: "ok" })
    return server
  })
  const one = yield* serving(first, [])
  const two = yield* serving(second, ["--json"])
  const lab = join(root, "shared/lab/agent/build.sock")
  const frames = yield* askAs(second, lab, send("s1", "hello from the second", inSpace("lab")))
  assert.deepInclude(last(frames), { type: "done", status: "ok" })
  return { as, here, lab, one, ownSocket, root, two }
})

class Users extends Context.Tag("test/Users")<Users, Effect.Effect.Success<typeof make>>() {}

describe.skipIf(lacks("root"))("two users on one root", () => {
  layer(Layer.scoped(Users, make), { excludeTestServices: true })((it) => {
    it.effect(
      "CL-134, SO-81: each socket of a space is announced with the space; one that only its owner may write to has none",
      () =>
        Effect.gen(function* () {
          const { lab, one, ownSocket, root, two } = yield* Users
          assert.strictEqual(
            yield* one.until("stdout", () => true),
            `agent build listens at ${ownSocket(first)}\nagent build in the shared space lab listens at ${lab}\nready\n`
          )
          assert.deepStrictEqual(jsonLines(yield* two.until("stdout", () => true)), [
            {
              type: "ready",
              root,
              sockets: [
                { kind: "agent", name: "build", path: ownSocket(second) },
                { kind: "agent", name: "build", space: "den", path: join(root, "shared/den/agent/build.sock") }
              ]
            }
          ])
        })
    )

    it.effect("SO-80, FI-93, FI-94: sessions, ledger and sockets of each user are that user's alone", () =>
      Effect.gen(function* () {
        const { as, here, ownSocket, root } = yield* Users
        const look = (path: string) => {
          const { gid, mode, uid } = lstatSync(join(root, path))
          return `${uid}:${gid} ${(mode & 0o7777).toString(8)} ${path}`
        }
        for (const path of ["home", "shared", ".daybook"]) assert.match(look(path), /^65533:4242 1777 /)
        for (const { uid } of [first, second]) {
          for (const [top, files] of [
            [`home/${uid}`, "600"],
            [`.daybook/${uid}`, "600"]
          ] as const) {
            assert.strictEqual(look(top), `${uid}:${team} 700 ${top}`)
            for (const path of everyPath(join(root, top)).map((path) => path.slice(root.length + 1))) {
              const mode = lstatSync(join(root, path)).isDirectory() ? "700" : files
              assert.strictEqual(look(path), `${uid}:${team} ${mode} ${path}`)
            }
          }
        }
        for (const [user, other] of [
          [first, second],
          [second, first]
        ] as const) {
          assert.deepStrictEqual(yield* askAs(user, ownSocket(other), { op: "ping" }), [{ fault: "EACCES" }])
          assert.include((yield* here.ctx(["latest", "build"], as(user))).stdout, said(`private of ${user.uid}`))
          assert.strictEqual((yield* here.ctx(["latest", "build", "--uid", String(other.uid)], as(user))).code, 13)
        }
      })
    )

    it.effect(
      "SO-81: what a member sends to the owner's socket is in files that the member reads, and nobody else",
      () =>
        Effect.gen(function* () {
          const { as, here, lab, root } = yield* Users
          const folder = join(root, "shared/lab/agent/build/session/default")
          assert.deepStrictEqual([lstatSync(folder).uid, lstatSync(folder).gid], [first.uid, team])
          const ctx = (user: User, ...words: ReadonlyArray<string>) =>
            here.ctx([...words, "build", "--shared", "lab"], as(user))
          assert.include((yield* ctx(second, "latest")).stdout, said("hello from the second"))
          assert.include((yield* ctx(second, "history")).stdout, "\nhello from the second\n")
          assert.include((yield* ctx(second, "sessions")).stdout, "  default  ")
          const resumed = yield* askAs(second, lab, { op: "resume", ...inSpace("lab") })
          assert.include(JSON.stringify(resumed), "hello from the second")
          for (const verb of ["latest", "history", "sessions"]) {
            assert.deepInclude(yield* ctx(stranger, verb), { code: 13, stdout: "" })
          }
          assert.deepStrictEqual(yield* askAs(stranger, lab, { op: "ping" }), [{ fault: "EACCES" }])
        })
    )

    it.effect(
      "SO-83: a second server of a space says who owns it, refuses what is for the space, and serves the rest",
      () =>
        Effect.gen(function* () {
          const { lab, ownSocket, two } = yield* Users
          const owns =
            'user 65533 owns the shared space "lab": use shared/lab/agent/build.sock, if that user serves agent "build" to others'
          const log = yield* two.until("stderr", (text) => text.includes(owns))
          assert.strictEqual(log.split(owns).length, 2, log)
          const requests = [
            send("a", "hi", inSpace("lab")),
            { op: "resume", ...inSpace("lab") },
            { op: "cancel", id: "b", ...inSpace("lab") },
            { op: "list", id: "c", ...inSpace("lab") }
          ]
          const refused = yield* askAs(second, ownSocket(second), ...requests)
          assert.deepStrictEqual(
            refused.map(({ code, message }) => [code, message]),
            requests.map(() => ["EACCES", owns])
          )
          assert.strictEqual(lstatSync(lab).uid, first.uid)
          const den = yield* askAs(second, ownSocket(second), send("d", "in the den", inSpace("den")))
          assert.deepInclude(last(den), { type: "done", status: "ok" })
        })
    )

    it.effect("FI-96: beside both servers, verify finds nothing of the other user", () =>
      Effect.gen(function* () {
        const { as, here } = yield* Users
        for (const user of [first, second]) {
          const { code, stdout } = yield* here.run(["files", "verify"], as(user))
          assert.deepStrictEqual([user.uid, code, stdout], [user.uid, 0, ""])
        }
      })
    )

    it.effect("FI-94: an export of one user changes nothing of the other", () =>
      Effect.gen(function* () {
        const { as, here, one, root, two } = yield* Users
        for (const server of [one, two]) yield* server.signal("SIGTERM")
        for (const server of [one, two]) assert.strictEqual((yield* server.ended).code, 0)
        const of = (uid: number) =>
          everyPath(root)
            .map((path) => [path, lstatSync(path)] as const)
            .filter(([, stats]) => stats.uid === uid)
            .map(([path, { ctimeMs, gid, mode, size }]) => [path, mode, gid, size, ctimeMs])
        for (const [user, other] of [
          [first, second],
          [second, first]
        ] as const) {
          const before = of(other.uid)
          for (const verb of ["export", "rebuild"]) {
            const { code, stderr } = yield* here.run(["files", verb], as(user))
            assert.deepStrictEqual([user.uid, verb, code, stderr], [user.uid, verb, 0, ""])
          }
          assert.deepStrictEqual(of(other.uid), before)
        }
      })
    )
  })
})
