/**
 * Verification. Method: sessions are exported, then the tree is changed by hand in one way at a time and looked at. What
 * must hold: the kind and the path of what was found, and that looking changed nothing.
 */
import { execFileSync } from "node:child_process"
import {
  appendFileSync,
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Chunk, Effect, Fiber, Stream } from "effect"
import { verify } from "../../packages/files/src/verify/Verify.ts"
import { draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { begin, renamed, session } from "../support/Logs.ts"
import { exportAll, exporterAt, tree, withStore } from "./support/Exports.ts"
import { lacks } from "../support/Parts.ts"

const uid = 7
const house = "home/7/agent/build/session"
const [one, two] = [session("one"), session("two")]
const folder = `${house}/${one}`

const found = (root: string, sessionID?: string) =>
  Effect.map(Stream.runCollect(verify({ root, uid, sessionID })), (findings) =>
    Chunk.toReadonlyArray(findings).map(({ kind, path }) => `${kind} ${path}`)
  )

/** Two sessions, exported. */
const exported = <A, E, R>(use: (root: string, folder: string) => Effect.Effect<A, E, R>) =>
  withStore((root, folder) =>
    Effect.gen(function* () {
      yield* begin(one, 3)
      yield* begin(two, 2)
      yield* exportAll({ root, uid })
      return yield* use(root, folder)
    })
  )

/** Everything that could change by looking. */
const stamps = (root: string) =>
  readdirSync(root, { recursive: true, encoding: "utf8" })
    .toSorted()
    .map((path) => {
      const { ctimeNs, ino, mode, mtimeNs, size } = lstatSync(join(root, path), { bigint: true })
      return [path, ino, mode, size, mtimeNs, ctimeNs].join(" ")
    })

const cases: Record<string, readonly [(path: (name: string) => string) => void, ReadonlyArray<string>]> = {
  "a missing value": [(at) => rmSync(at(`${folder}/state`)), [`missing ${folder}/state`]],
  "a missing log": [(at) => rmSync(at(`${folder}/events.jsonl`)), [`missing ${folder}/events.jsonl`]],
  "a missing index": [(at) => rmSync(at(`${house}/index`), { recursive: true }), [`missing ${house}/index`]],
  "a missing session": [(at) => rmSync(at(folder), { recursive: true }), [`missing ${folder}`]],
  "a missing folder of the context": [
    (at) => rmSync(at(`${folder}/context`), { recursive: true }),
    [`missing ${folder}/context`]
  ],
  "another value": [(at) => writeFileSync(at(`${folder}/cwd`), "/etc\n"), [`changed ${folder}/cwd`]],
  "another row": [
    (at) =>
      writeFileSync(
        at(`${folder}/events.jsonl`),
        readFileSync(at(`${folder}/events.jsonl`), "utf8").replace("created", "CREATED")
      ),
    [`changed ${folder}/events.jsonl`]
  ],
  "a row too many": [
    (at) => appendFileSync(at(`${folder}/messages.jsonl`), "{}\n"),
    [`changed ${folder}/messages.jsonl`]
  ],
  "a torn log": [(at) => truncateSync(at(`${folder}/events.jsonl`), 50), [`torn ${folder}/events.jsonl`]],
  "a torn end": [(at) => appendFileSync(at(`${folder}/events.jsonl`), "{"), [`torn ${folder}/events.jsonl`]],
  "another index": [(at) => writeFileSync(at(`${house}/index/list`), "ses_two\n"), [`changed ${house}/index/list`]],
  "permissions of a file": [(at) => chmodSync(at(`${folder}/state`), 0o644), [`mode ${folder}/state`]],
  "a link": [
    (at) => {
      renameSync(at(`${folder}/state`), at(`${folder}/.away`))
      symlinkSync(".away", at(`${folder}/state`))
    },
    [`refused ${folder}/state`, `foreign ${folder}/.away`]
  ],
  "a pipe": [
    (at) => {
      rmSync(at(`${folder}/meta.json`))
      execFileSync("mkfifo", [at(`${folder}/meta.json`)])
    },
    [`refused ${folder}/meta.json`]
  ],
  "a folder in place of a log": [
    (at) => {
      rmSync(at(`${folder}/messages.jsonl`))
      mkdirSync(at(`${folder}/messages.jsonl`))
    },
    [`refused ${folder}/messages.jsonl`]
  ],
  "what is not Daybook's": [
    (at) => writeFileSync(at(`${folder}/context/notes`), ""),
    [`foreign ${folder}/context/notes`]
  ],
  "a name with a newline": [(at) => writeFileSync(at(`${house}/index/a\nb`), ""), [`foreign ${house}/index/a\nb`]],
  "a session that nobody has": [(at) => mkdirSync(at(`${house}/ghost`)), [`foreign ${house}/ghost`]],
  "sessions of an agent that has none": [
    (at) => mkdirSync(at("home/7/agent/ghost/session/default"), { recursive: true, mode: 0o700 }),
    ["foreign home/7/agent/ghost/session"]
  ],
  "sessions of a model in a space that has none": [
    (at) => mkdirSync(at("shared/team/model/m.d/session/default"), { recursive: true, mode: 0o700 }),
    ["foreign shared/team/model/m.d/session"]
  ],
  "nothing: an aside": [(at) => writeFileSync(at(`${folder}/state.aside.3`), "theirs"), []],
  "nothing: the asides of a session that was removed": [
    (at) => {
      mkdirSync(at(`${house}/ses_gone/context`), { recursive: true })
      writeFileSync(at(`${house}/ses_gone/context/pack.json.aside.1`), "theirs")
    },
    []
  ],
  "nothing: the agent's world, sockets and defaults": [
    (at) => {
      mkdirSync(at("home/7/agent/build/root/session/x"), { recursive: true })
      mkdirSync(at("agent/build.d"), { recursive: true })
      writeFileSync(at("agent/build.d/cwd"), "/\n")
    },
    []
  ]
}

for (const [what, [change, expected]] of Object.entries(cases)) {
  it.scoped(`FI-114, FI-87, FL-7: a verification finds ${what}, and changes nothing`, () =>
    exported((root) =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* found(root), [])
        change((name) => join(root, name))
        const before = stamps(root)
        assert.deepStrictEqual((yield* found(root)).toSorted(), expected.toSorted())
        assert.deepStrictEqual(stamps(root), before)
        // The other session is as it was.
        assert.deepStrictEqual(yield* found(root, two), [])
      })
    )
  )
}

it.scoped("FI-87, SC-3: the permissions of every folder on the way are looked at", () =>
  exported((root) =>
    Effect.gen(function* () {
      const folders = Object.entries(tree(root)).flatMap(([path, what]) => (what.startsWith("folder") ? [path] : []))
      assert.include(folders, "home")
      assert.include(folders, `${folder}/context`)
      assert.include(folders, `${house}/index/by-cwd`)
      for (const path of folders) {
        chmodSync(join(root, path), 0o755)
        assert.deepStrictEqual(yield* found(root), [`mode ${path}`])
        chmodSync(join(root, path), 0o700)
      }
    })
  )
)

it.scoped("FI-87, SC-3: nothing is looked at through a link in place of a folder", () =>
  exported((root) =>
    Effect.gen(function* () {
      for (const path of [`${folder}/context`, folder, `${house}/index`, `${house}/index/by-cwd`, house, "home"]) {
        const at = join(root, path)
        renameSync(at, `${root}.away`)
        symlinkSync(`${root}.away`, at)
        const seen = new Set(yield* found(root))
        assert.deepStrictEqual(
          [...seen].filter((finding) => !finding.startsWith(`refused ${path}`)),
          [],
          path
        )
        assert.isAtLeast(seen.size, 1, path)
        rmSync(at)
        renameSync(`${root}.away`, at)
      }
      assert.deepStrictEqual(yield* found(root), [])
    })
  )
)

it.scoped("FI-114, FI-87: files that tell of less than the log are behind, and nothing else", () =>
  exported((root) =>
    Effect.gen(function* () {
      yield* Effect.flatMap(EventLog, (log) => log.append(one, [renamed("later")]))
      assert.deepStrictEqual(yield* found(root), [`behind ${folder}`])
    })
  )
)

it.scoped("FI-114, FI-87, FL-8: rows that a killed export wrote before its values are behind, cut off or whole", () =>
  exported((root, place) =>
    Effect.gen(function* () {
      yield* Effect.flatMap(EventLog, (log) => log.append(one, [renamed("later"), renamed("again")]))
      const fresh = join(place, "fresh")
      yield* exportAll({ root: fresh, uid })
      const rows = readFileSync(join(fresh, folder, "events.jsonl"))
      const { size } = lstatSync(join(root, folder, "events.jsonl"))
      for (const end of [size + 1, rows.length - 1, rows.length]) {
        writeFileSync(join(root, folder, "events.jsonl"), rows.subarray(0, end))
        assert.deepStrictEqual(yield* found(root), [`behind ${folder}`])
      }
      // More than the log has is not ours.
      appendFileSync(join(root, folder, "events.jsonl"), "{}\n")
      assert.deepStrictEqual(yield* found(root), [`changed ${folder}/events.jsonl`, `behind ${folder}`])
    })
  )
)

it.scopedLive("FI-115, FI-87: beside an exporter that writes, what is behind is all that is found", () =>
  exported((root) =>
    Effect.gen(function* () {
      const log = yield* EventLog
      const exporter = yield* exporterAt({ root, uid })
      const seen = new Set<string>()
      const writing = yield* Effect.fork(
        Effect.forEach(Array.from({ length: 60 }), (_, n) =>
          Effect.gen(function* () {
            yield* log.append(one, [renamed(`title ${n}`)])
            yield* log.append(two, [draft("session.next.moved", { location: { directory: `/work/${n % 3}` } })])
            if (n % 10 === 0) yield* begin(session(`new${n}`), 1)
            if (n % 20 === 9) yield* log.remove(session(`new${n - 9}`))
            yield* exporter.catchUp
          })
        )
      )
      while ((yield* Fiber.poll(writing))._tag === "None") for (const finding of yield* found(root)) seen.add(finding)
      yield* Fiber.join(writing)
      assert.deepStrictEqual(
        [...seen].filter((finding) => !finding.startsWith("behind ") && !/^missing .*\/ses_new\d+$/.test(finding)),
        []
      )
      assert.deepStrictEqual(yield* found(root), [])
    })
  )
)

it.scoped("FI-87: an id that no session has, and a root that is not there, are errors", () =>
  exported((root) =>
    Effect.gen(function* () {
      assert.strictEqual((yield* Effect.flip(found(root, "ses_nobody")))._tag, "SessionNotFound")
      assert.strictEqual((yield* Effect.flip(found(root, "../x")))._tag, "SessionNotFound")
      assert.strictEqual((yield* Effect.flip(found(`${root}/nowhere`)))._tag, "RootUnusable")
    })
  )
)

/** Folders with sessions that the log does not know: of another user, the last one in this user's home. */
const ofOthers = ["home/4001", "shared/theirs", "home/7/agent/theirs"]
const withOthers = (root: string, mode: number) => {
  chmodSync(root, mode)
  for (const path of ofOthers) {
    mkdirSync(join(root, path, "agent/coder/session/default"), { recursive: true })
    chownSync(join(root, path), 4_001, 4_001)
    chmodSync(join(root, path), 0o700)
  }
}

it.scoped.skipIf(lacks("root"))(
  "FI-96: in a common root, homes and spaces of other users are no finding; a folder of theirs in this user's home is refused",
  () =>
    exported((root) =>
      Effect.gen(function* () {
        withOthers(root, 0o1777)
        // `home` keeps the mode that it had before the root was common.
        const findings = (yield* found(root)).filter((finding) => !finding.startsWith("mode "))
        assert.deepStrictEqual(findings, ["refused home/7/agent/theirs"])
      })
    )
)

it.scoped.skipIf(lacks("root"))("FI-96: in a root of one user, each folder of another is refused", () =>
  exported((root) =>
    Effect.gen(function* () {
      withOthers(root, 0o700)
      const findings = yield* found(root)
      assert.deepStrictEqual(findings.toSorted(), ofOthers.map((path) => `refused ${path}`).toSorted())
    })
  )
)
