/**
 * Answers that are longer than what is held in memory. Method: the log of such an answer is exported; `Buffer` and `JSON`
 * are watched meanwhile, so that the longest text and buffer that was made is known. What must hold besides: each byte.
 */
import { appendFileSync, closeSync, openSync, readFileSync, writeSync } from "node:fs"
import { join } from "node:path"
import { isDeepStrictEqual } from "node:util"
import { assert, it } from "@effect/vitest"
import { Chunk, Effect, Stream } from "effect"
import { afterEach, vi } from "vitest"
import { verify } from "../../packages/files/src/verify/Verify.ts"
import { ActivityID, MessageID } from "../../packages/log/src/domain/Identifiers.ts"
import { longestText } from "../../packages/log/src/domain/LongText.ts"
import { type Draft, draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import * as Fold from "../../packages/transcript/src/Fold.ts"
import { temporaryFolder } from "../support/Database.ts"
import { session } from "../support/Logs.ts"
import { exportAll, storeAt, tree } from "./support/Exports.ts"
import { folded, stored } from "./support/Logs.ts"

afterEach(() => void vi.restoreAllMocks())

const uid = 7
const id = session("long")
const folder = `home/7/agent/build/session/${id}`
const created = draft("session.created", { location: { directory: "/work" } })
const activityID = ActivityID.make("act_1")
const started = draft("session.next.activity.started", { activityID, trigger: "resume" })
const completed = draft("session.next.activity.settled", { activityID, outcome: "completed" })

/** A step that says these texts. */
const says = (name: string, ...texts: ReadonlyArray<string>): ReadonlyArray<Draft> => {
  const assistantMessageID = MessageID.make(`msg_${name}`)
  return [
    draft("session.next.step.started", { assistantMessageID, agent: "build", model: { providerID: "p", id: "m" } }),
    ...texts.flatMap((text, n) => [
      draft("session.next.text.started", { assistantMessageID, textID: `t${n}` }),
      draft("session.next.text.ended", { assistantMessageID, textID: `t${n}`, text })
    ]),
    draft("session.next.step.ended", {
      assistantMessageID,
      finish: "stop",
      cost: 0,
      tokens: { input: 0, output: 0, reasoning: 0, cache: { read: 0, write: 0 } }
    })
  ]
}

/** A full part, with quotes and line breaks in it that JSON escapes. */
const part = 'all "work" and\nno play. '.repeat(longestText / 16).slice(0, longestText)

/** Characters of all texts in a value, and of the longest. */
const held = (value: unknown): { readonly all: number; readonly longest: number } => {
  if (typeof value === "string") return { all: value.length, longest: value.length }
  if (typeof value !== "object" || value === null) return { all: 0, longest: 0 }
  const found = Object.values(value).map(held)
  return {
    all: found.reduce((sum, { all }) => sum + all, 0),
    longest: Math.max(0, ...found.map(({ longest }) => longest))
  }
}

it("FI-98: what the fold holds of an answer does not grow with its text", () => {
  const most = (count: number) => {
    let [state, all, longest] = [Fold.initial, 0, 0]
    const drafts = [created, started, ...says("a", ...Array.from({ length: count }, () => part)), completed]
    for (const event of stored(drafts)) {
      const next = Fold.evolve(state, event)
      state = next.state
      const found = held([next.state, next.messages, next.events])
      all = Math.max(all, found.all)
      longest = Math.max(longest, found.longest)
    }
    return { all, longest }
  }
  const [few, many] = [most(8), most(80)]
  assert.isAtMost(many.longest, Fold.textLimit)
  // A place is remembered for each part, of a few characters at most.
  assert.isAtMost(many.all - few.all, 72 * 32)
})

it("FI-104, FI-31, FI-98: the row of a long answer is that of the answer whole, wherever its long texts lie", () => {
  const long = `😀${part.slice(1)}é`
  const cases: ReadonlyArray<ReadonlyArray<ReadonlyArray<string>>> = [
    [[long, long, long, long]],
    [["a".repeat(Fold.textLimit - 1), "€".repeat(Fold.longestHeld + 1), "b"]],
    [["a".repeat(Fold.textLimit)]],
    [["a".repeat(Fold.textLimit + 1)]],
    [["short"], ["€".repeat(Fold.longestHeld + 1)], [], ["", "a".repeat(10 * Fold.longestHeld)]],
    [["x".repeat(Fold.longestHeld + 1)], [long, "y"], [long]]
  ]
  for (const messages of cases) {
    const steps = messages.flatMap((texts, n) => says(`m${n}`, ...texts))
    const { events, latest } = folded(stored([created, started, ...steps, completed]))
    const whole = messages
      .map((texts) => texts.join(""))
      .filter((text) => text !== "")
      .join("\n\n")
    const shown = Fold.clip(whole)
    const row = events.find(({ type }) => type === "message")
    assert.isTrue(latest === whole)
    assert.isTrue(row?.type === "message" && row.content[0]?.text === shown)
    assert.deepInclude(row, shown === whole ? { type: "message" } : { truncated: true, length: whole.length })
  }
})

/** A root and a store with the log in it. */
const withLog = <A, E, R>(drafts: ReadonlyArray<Draft>, use: (root: string) => Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const place = yield* temporaryFolder
    return yield* Effect.gen(function* () {
      yield* (yield* EventLog).append(id, [created, started, ...drafts, completed])
      return yield* use(join(place, "ctx"))
    }).pipe(Effect.provide(storeAt(join(place, "store.db"))))
  })

const findings = (root: string) => Effect.map(Stream.runCollect(verify({ root, uid })), Chunk.toReadonlyArray)

const count = 24

it.scoped("FI-98, FI-99: no text or buffer that an export or a verification makes grows with the answer", () =>
  withLog(says("a", ...Array.from({ length: count }, () => part)), (root) =>
    Effect.gen(function* () {
      const watched = [
        vi.spyOn(Buffer, "from"),
        vi.spyOn(Buffer, "alloc"),
        vi.spyOn(Buffer, "allocUnsafe"),
        vi.spyOn(JSON, "stringify")
      ]
      yield* exportAll({ root, uid })
      assert.deepStrictEqual(yield* findings(root), [])
      const made = watched.flatMap(({ mock }) =>
        mock.results.map(({ value }) => (typeof value === "string" || Buffer.isBuffer(value) ? value.length : 0))
      )
      vi.restoreAllMocks()
      // Else nothing was watched.
      assert.isAbove(
        made.reduce((sum, length) => sum + length, 0),
        4 * count * part.length
      )
      assert.isAtMost(Math.max(...made), 4 * longestText)
      assert.strictEqual(readFileSync(join(root, folder, "latest.md"), "utf8"), `${part.repeat(count)}\n`)
    })
  )
)

const odd = [part, "short", `${part.slice(1)}\uD83D`, "\uDE00 whole again", `\uDE00${part.slice(2)}\uD83D`, "", part]

it.scoped("FI-7, FI-99: a long answer has each byte in its files, pairs of surrogates between two texts too", () =>
  withLog([...says("a", ...odd), ...says("b", "and", part)], (root) =>
    Effect.gen(function* () {
      yield* exportAll({ root, uid })
      const whole = `${odd.join("")}\n\nand${part}`.replaceAll(/\p{Surrogate}/gu, "\uFFFD")
      assert.isTrue(readFileSync(join(root, folder, "latest.md"), "utf8") === `${whole}\n`)
      const { messages } = folded(
        stored([created, started, ...says("a", ...odd), ...says("b", "and", part), completed], "long")
      )
      const lines = readFileSync(join(root, folder, "messages.jsonl"), "utf8")
        .trimEnd()
        .split("\n")
      assert.strictEqual(lines.length, 2)
      lines.forEach((line, n) => {
        const written: unknown = JSON.parse(line)
        // As `JSON.stringify` writes it, escapes and all.
        assert.isTrue(line === JSON.stringify(written))
        assert.deepNestedInclude(written, { content: messages[n]?.content, id: messages[n]?.id })
      })
    })
  )
)

for (const keep of [0.1, 0.5, 0.9, 1]) {
  it.scoped(`FI-75, FI-99: a long answer of which a kill left ${keep * 100} % is completed where it stands`, () =>
    withLog([], (root) =>
      Effect.gen(function* () {
        yield* exportAll({ root, uid })
        yield* (yield* EventLog).append(id, [
          draft("session.next.renamed", { title: "long" }),
          ...says("a", part, part, part),
          ...says("b", part)
        ])
        const fresh = `${root}-fresh`
        yield* exportAll({ root: fresh, uid })
        const content = readFileSync(join(fresh, folder, "messages.jsonl"))
        appendFileSync(join(root, folder, "messages.jsonl"), content.subarray(0, Math.floor(content.length * keep)))
        yield* exportAll({ root, uid })
        assert.isTrue(isDeepStrictEqual(tree(root), tree(fresh)))
      })
    )
  )
}

it.scoped("FI-87, FI-99: a verification finds one byte of a long answer that was changed", () =>
  withLog(says("a", part, part, part), (root) =>
    Effect.gen(function* () {
      yield* exportAll({ root, uid })
      for (const name of ["latest.md", "messages.jsonl"]) {
        const path = join(root, folder, name)
        const file = openSync(path, "r+")
        writeSync(file, "#", 2 * part.length)
        closeSync(file)
        assert.include(
          (yield* findings(root)).map(({ kind, path }) => `${kind} ${path}`),
          `changed ${folder}/${name}`
        )
      }
      yield* exportAll({ root, uid })
      assert.deepStrictEqual(yield* findings(root), [])
    })
  )
)
