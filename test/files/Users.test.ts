/**
 * Two users on one root, as real users of the system: each exporter is a process with a uid and a gid of its own. Without
 * the right to change users, the test's own user stands for the first, and what needs a second is shown by its folders.
 */
import { fork } from "node:child_process"
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import type { SharedSpaces } from "../../packages/files/src/layout/Layout.ts"
import { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { temporaryFolder } from "../support/Database.ts"
import { renamed } from "../support/Logs.ts"
import { storeAt, tree } from "./support/Exports.ts"
import { exportProgram } from "./support/Kills.ts"

const isRoot = process.geteuid?.() === 0
const [ada, bo] = isRoot
  ? [
      { uid: 6_001, gid: 6_001 },
      { uid: 6_002, gid: 6_002 }
    ]
  : [{ uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0 }, undefined]
/** The group of the shared space. */
const team = isRoot ? 6_100 : ada.gid

interface User {
  readonly uid: number
  readonly gid: number
}

/** Runs a program as the user; what it says. */
const runAs = (user: User, program: string, args: ReadonlyArray<string>, groups: ReadonlyArray<number> = []) =>
  Effect.async<string>((resume) => {
    const child = fork(program, args, {
      stdio: "inherit",
      execArgv: [],
      ...(isRoot ? { uid: user.uid, gid: groups[0] ?? user.gid } : {})
    })
    child.on("message", (said) => {
      resume(Effect.succeed(String(said)))
      child.kill("SIGKILL")
    })
    child.on("exit", (code, signal) => resume(Effect.succeed(`ended ${code} ${signal}`)))
  })

const modeOf = (path: string) => (statSync(path).mode & 0o7777).toString(8)
const ownerOf = (path: string) => statSync(path).uid

const started = Effect.gen(function* () {
  const program = yield* exportProgram
  const folder = yield* temporaryFolder
  // Both users come this far; the root is common to them.
  chmodSync(folder, 0o755)
  const root = join(folder, "ctx")
  mkdirSync(root)
  chmodSync(root, 0o1777)
  /** A database of the user with sessions at the addresses. */
  const storeOf = Effect.fnUntraced(function* (user: User, spaces: ReadonlyArray<string>) {
    const own = join(folder, `user-${user.uid}`)
    mkdirSync(own)
    const filename = join(own, "store.db")
    yield* Effect.gen(function* () {
      const log = yield* EventLog
      const place = { kind: "agent", name: "coder", session: "default" } as const
      const addresses = [
        { scope: "private", uid: user.uid, ...place } as const,
        ...spaces.map((shared) => ({ scope: "shared", shared, ...place }) as const)
      ]
      for (const [n, address] of addresses.entries()) {
        yield* log.append(SessionID.make(`ses_${user.uid}_${n}`), [
          draft("session.created", { location: { directory: "/work" } }),
          draft("session.next.addressed", { address }),
          renamed(`of ${user.uid}`)
        ])
      }
    }).pipe(Effect.provide(storeAt(filename)), Effect.scoped)
    if (isRoot)
      for (const path of [own, ...["", "-wal", "-shm"].map((end) => filename + end)]) {
        if (existsSync(path)) chownSync(path, user.uid, user.gid)
      }
    return filename
  })
  const shared: SharedSpaces = {
    team: { read: "group", group: team },
    open: { read: "everyone" },
    closed: { read: "owner" }
  }
  const exportAs = (user: User, filename: string, groups: ReadonlyArray<number> = [team]) =>
    runAs(
      user,
      program,
      [filename, root, String(Number.MAX_SAFE_INTEGER), String(user.uid), JSON.stringify(shared)],
      groups
    )
  return { exportAs, root, storeOf }
})

it.scopedLive(
  "FI-93, FI-94, FL-9: two users keep their sessions under one root, and neither touches the other's files",
  () =>
    Effect.gen(function* () {
      const { exportAs, root, storeOf } = yield* started
      const first = yield* storeOf(ada, ["team", "open", "closed"])
      assert.strictEqual(yield* exportAs(ada, first), "done")
      const before = tree(root)
      const place = (space: string) => join(root, "shared", space, "agent/coder/session/default")
      assert.deepStrictEqual(
        ["team", "open", "closed"].map((space) => [modeOf(place(space)), modeOf(join(place(space), "state"))]),
        [
          ["2750", "640"],
          ["755", "644"],
          ["700", "600"]
        ]
      )
      for (const path of [
        place("team"),
        join(place("team"), "meta.json"),
        join(root, "shared/team/agent/coder/session/index/list")
      ]) {
        assert.strictEqual(statSync(path).gid, team, path)
      }
      for (const path of ["home", "shared", ".daybook"]) assert.strictEqual(modeOf(join(root, path)), "1777")
      if (bo === undefined) return
      const second = yield* storeOf(bo, ["team", "open"])
      const stranger = yield* exportAs(bo, second, [])
      assert.include(stranger, "the shared space team are for group 6100, and user 6002 is not a member of it")
      assert.strictEqual(yield* exportAs(bo, second), "done")
      // Again, beside the other: each has a record of its own.
      assert.strictEqual(yield* exportAs(ada, first), "done")
      const now = tree(root)
      for (const [path, content] of Object.entries(before)) assert.strictEqual(now[path], content, path)
      const added = Object.keys(now).filter((path) => !(path in before))
      assert.isTrue(
        added.every((path) => path === `home/${bo.uid}` || path.startsWith(`home/${bo.uid}/`)),
        added.join(" ")
      )
      assert.include(
        readFileSync(join(root, "home", String(bo.uid), "agent/coder/session/default/meta.json"), "utf8"),
        "of 6002"
      )
      for (const user of [ada, bo]) {
        for (const path of [`home/${user.uid}`, `.daybook/${user.uid}`]) {
          assert.deepStrictEqual([ownerOf(join(root, path)), modeOf(join(root, path))], [user.uid, "700"])
        }
      }
    })
)
