/**
 * Session files and retention. Method: sessions are exported and pruned with an archive; putting the archive back gives
 * the whole log again, with which the files must agree. Spec: specs/files.md.
 */
import { appendFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Chunk, Effect, Stream } from "effect"
import { verify } from "../../packages/files/src/verify/Verify.ts"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { draft } from "../../packages/log/src/events/SessionEvents.ts"
import type { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { atOnce } from "../../packages/log/src/retention/Pace.ts"
import { restore } from "../../packages/log/src/retention/Retention.ts"
import { created, session } from "../support/Logs.ts"
import { begun, fill, pruned, turns } from "../support/Pruning.ts"
import { exportAll, exporterAt, tree, withStore } from "./support/Exports.ts"
import { told } from "./support/Told.ts"

const uid = 7
const house = "home/7/agent/build/session"
const [one, two] = [session("one"), session("two")]
/** Words of an answer: enough that the fold refers to its event. */
const long = 3_000

const found = (root: string) =>
  Effect.map(Stream.runCollect(verify({ root, uid })), (findings) =>
    Chunk.toReadonlyArray(findings)
      .map(({ kind, path }) => `${kind} ${path}`)
      .toSorted()
  )

/** Two sessions, exported; then the first one is pruned. */
const exported = <A, E, R>(use: (root: string, folder: string) => Effect.Effect<A, E, R>) =>
  withStore((root, folder) =>
    Effect.gen(function* () {
      yield* begun(one, 3)
      yield* fill(one, [told("a picture")])
      yield* begun(two, 2)
      yield* exportAll({ root, uid })
      yield* pruned(one)
      return yield* use(root, folder)
    })
  )

/** The findings that an exporter reports during the work. */
const reported = <A, E, R>(
  root: string,
  work: (exporter: Effect.Effect.Success<ReturnType<typeof exporterAt>>) => Effect.Effect<A, E, R>
) =>
  Effect.scoped(
    Effect.gen(function* () {
      const exporter = yield* exporterAt({ root, uid })
      const findings = yield* exporter.findings
      yield* work(exporter)
      return Chunk.toReadonlyArray(yield* findings.takeAll).map(({ kind, sessionID }) => `${kind} ${sessionID}`)
    })
  )

it.scoped("FI-125: files that were written before a prune continue after it, byte for byte", () =>
  withStore((root, folder) =>
    Effect.gen(function* () {
      const [first, second, third, fourth] = turns(4, long)
      const id: SessionID = one
      // The export ends within a run: its checkpoint is at the end of the run before.
      yield* fill(id, [[created], first ?? [], second ?? [], (third ?? []).slice(0, 6)])
      yield* exportAll({ root, uid })
      const { cut, path } = yield* pruned(id, {}, join(folder, "archive"))
      assert.isAbove(cut.to, cut.floor)
      yield* exportAll({ root, uid })
      yield* fill(id, [(third ?? []).slice(6)])
      assert.deepStrictEqual(yield* reported(root, ({ catchUp }) => catchUp), [])
      yield* fill(id, [fourth ?? []])
      assert.deepStrictEqual(yield* reported(root, ({ exportSession }) => exportSession(id)), [])
      yield* restore(path ?? "", { pace: atOnce })
      assert.deepStrictEqual(yield* found(root), [])
      yield* exportAll({ root: join(folder, "fresh"), uid })
      assert.deepStrictEqual(tree(root), tree(join(folder, "fresh")))
    })
  )
)

it.scoped("FI-121: a verification names a pruned session, and compares the others", () =>
  exported((root) =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* found(root), [`pruned ${house}/${one}`])
      appendFileSync(join(root, house, two, "messages.jsonl"), "{}\n")
      assert.deepStrictEqual(yield* found(root), [`changed ${house}/${two}/messages.jsonl`, `pruned ${house}/${one}`])
    })
  )
)

it.scoped("FI-121: where every session of a house is pruned, its index is not foreign", () =>
  exported((root) =>
    Effect.gen(function* () {
      yield* pruned(two)
      assert.deepStrictEqual(yield* found(root), [`pruned ${house}/${one}`, `pruned ${house}/${two}`])
    })
  )
)

it.scoped("FI-460: a rebuild counts the pruned sessions that it left as they are", () =>
  exported((root) =>
    Effect.gen(function* () {
      const { rebuild } = yield* exporterAt({ root, uid })
      assert.deepInclude(yield* rebuild(), { sessions: 1, left: 1 })
      assert.deepInclude(yield* rebuild(one), { sessions: 0, left: 1 })
      assert.deepInclude(yield* rebuild(two), { sessions: 1, left: 0 })
    })
  )
)

it.scoped("FI-122: a rebuild reports a pruned session and leaves its files as they are", () =>
  exported((root) =>
    Effect.gen(function* () {
      const before = tree(root)
      assert.deepStrictEqual(yield* reported(root, ({ rebuild }) => rebuild()), [`pruned ${one}`])
      assert.deepStrictEqual(yield* reported(root, ({ rebuild }) => rebuild(one)), [`pruned ${one}`])
      assert.deepStrictEqual(tree(root), before)
    })
  )
)

it.scoped("FI-122: a log of a pruned session that others changed keeps its lines in place", () =>
  exported((root) =>
    Effect.gen(function* () {
      appendFileSync(join(root, house, one, "messages.jsonl"), "{}\n")
      const before = tree(root)
      assert.deepStrictEqual(yield* reported(root, ({ catchUp }) => catchUp), [`pruned ${one}`])
      assert.deepStrictEqual(tree(root), before)
    })
  )
)

/** What others change, or a session's next event; it gets only what is not pruned. */
const harms: Readonly<Record<string, (root: string) => Effect.Effect<unknown, unknown, EventLog>>> = {
  "a missing log": (root) => Effect.sync(() => rmSync(join(root, house, one, "messages.jsonl"))),
  "a missing blob": (root) => Effect.sync(() => rmSync(join(root, blobOf(root)))),
  "a changed blob": (root) => Effect.sync(() => appendFileSync(join(root, blobOf(root)), "x")),
  "another address": () =>
    fill(one, [
      [
        draft("session.next.addressed", {
          address: { scope: "private", uid, kind: "agent", name: "coder", session: "x" }
        })
      ]
    ]),
  "a lost record": (root) =>
    Effect.zipRight(
      Effect.sync(() => rmSync(join(root, ".daybook"), { recursive: true })),
      fill(one, turns(1))
    )
}

const blobOf = (root: string): string =>
  Object.keys(tree(root)).find((path) => path.startsWith(`${house}/${one}/context/dedup/blob/sha256-`)) ?? "none"

for (const [what, harm] of Object.entries(harms)) {
  it.scoped(`FI-122: after ${what} the files of a pruned session stay as they are, and it is reported once`, () =>
    exported((root) =>
      Effect.gen(function* () {
        yield* harm(root)
        const ofOne = (root: string) =>
          Object.entries(tree(root)).filter(([path]) => path.startsWith(`${house}/${one}`))
        const before = ofOne(root)
        assert.isAbove(before.length, 3)
        const found = yield* reported(root, ({ catchUp }) => Effect.zipRight(catchUp, catchUp))
        assert.deepStrictEqual(
          found.filter((finding) => finding.startsWith("pruned")),
          [`pruned ${one}`]
        )
        assert.deepStrictEqual(ofOne(root), before)
        // The other session is exported all the same.
        yield* fill(two, turns(1))
        yield* exportAll({ root, uid })
        assert.include(tree(root)[`${house}/${two}/latest.md`], "answer 0")
      })
    )
  )
}

it.scoped("FI-123: a new root gets the sessions that are whole, and the others are reported", () =>
  exported((_, folder) =>
    Effect.gen(function* () {
      yield* fill(one, turns(1))
      const root = join(folder, "new")
      assert.deepStrictEqual(yield* reported(root, ({ catchUp }) => catchUp), [`pruned ${one}`])
      assert.hasAnyKeys(tree(root), [`${house}/${two}/messages.jsonl`])
      assert.doesNotHaveAnyKeys(tree(root), [`${house}/${one}`])
    })
  )
)
