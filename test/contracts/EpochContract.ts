/** The context epoch of a session (EP-5, EP-6, EP-8, EP-9, CX-51..CX-54). */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { difference, type Snapshot } from "../../packages/log/src/domain/Snapshot.ts"
import { draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { EpochStore } from "../../packages/log/src/store/EpochStore.ts"
import type { ReadModel } from "./ReadModel.ts"
import { begin, message, session } from "./Samples.ts"

const long = "Use tabs in every file of this folder. ".repeat(5)
const baseline = `Today is Monday.\n\n${long}`
const told: Snapshot = {
  "daybook/date": { value: "Monday" },
  "instructions/4-project": { value: [{ path: "/work/AGENTS.md", text: long }], removed: "No instructions hold." }
}

/** A request frame that introduces a baseline. */
const introduced = (snapshot: Snapshot, text: string, baselineSeq: number, place: number | string = 1) =>
  draft("session.next.request.framed", {
    hash: "hash",
    system: ["Be brief.", typeof place === "number" ? text : `${text} And more.`],
    baselineSeq,
    context: { baseline: place, snapshot: difference({}, snapshot, text) }
  })

const updated = (before: Snapshot, next: Snapshot, text: string) =>
  draft("session.next.context.updated", { messageID: message(), text, snapshot: difference(before, next, text) })

const compacted = () =>
  draft("session.next.compaction.ended", { messageID: message(), reason: "auto", text: "summary", recent: "" })

/** A session whose first event after its creation introduces the baseline. */
const withEpoch = Effect.gen(function* () {
  const log = yield* EventLog
  const id = session()
  yield* begin(id)
  yield* log.append(id, [introduced(told, baseline, 0)])
  return id
})

const epochOf = (id: SessionID) => Effect.flatMap(EpochStore, (epochs) => epochs.get(id))

/** Registers every test of the contract of `EpochStore`. */
export const epochStoreContract = <E>({ layer, name }: ReadModel<EpochStore, E>): void =>
  it.layer(layer)(`epochs, ${name}`, (it) => {
    it.effect("CX-53: a session without an event that introduces a baseline has no epoch", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        assert.isUndefined(yield* epochOf(id))
        yield* begin(id)
        yield* log.append(id, [
          draft("session.next.request.framed", { hash: "hash", system: ["Be brief."], baselineSeq: 0 }),
          draft("session.next.context.updated", { messageID: message(), text: "told without a snapshot" })
        ])
        assert.isUndefined(yield* epochOf(id))
      })
    )

    it.effect("CX-51: a frame introduces the baseline at its place in the system texts, with its snapshot", () =>
      Effect.gen(function* () {
        const id = yield* withEpoch
        assert.deepStrictEqual(yield* epochOf(id), {
          baseline,
          snapshot: told,
          baselineSeq: 0,
          compactedSeq: -1,
          toldSeq: -1
        })
      })
    )

    it.effect("CX-51: a baseline that a hook changed in the system texts is the text in the event", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        yield* begin(id)
        yield* log.append(id, [introduced(told, baseline, 0, baseline)])
        assert.deepInclude(yield* epochOf(id), { baseline, snapshot: told })
      })
    )

    it.effect("EP-5: context updates advance the snapshot, and the baseline stays", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, yield* withEpoch]
        const tuesday: Snapshot = { ...told, "daybook/date": { value: "Tuesday" } }
        const revoked: Snapshot = { "daybook/date": { value: "Tuesday" } }
        yield* log.append(id, [updated(told, tuesday, "Today is Tuesday.")])
        assert.deepInclude(yield* epochOf(id), { baseline, snapshot: tuesday, toldSeq: 2 })
        yield* log.append(id, [updated(tuesday, revoked, "No instructions hold.")])
        assert.deepInclude(yield* epochOf(id), { baseline, snapshot: revoked, baselineSeq: 0, toldSeq: 3 })
      })
    )

    it.effect("CX-52: a long string that an update quotes from its text or the earlier snapshot is complete", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, yield* withEpoch]
        const more = "Write short sentences in all documents. ".repeat(5)
        const files = [
          { path: "/work/AGENTS.md", text: long },
          { path: "/work/docs/AGENTS.md", text: more }
        ]
        const next: Snapshot = { ...told, "instructions/4-project": { value: files } }
        const update = updated(told, next, `Also: ${more}`)
        assert.notInclude(JSON.stringify(update.data.snapshot), long)
        yield* log.append(id, [update])
        assert.deepStrictEqual((yield* epochOf(id))?.snapshot, next)
      })
    )

    it.effect("EP-6: the baseline keeps its bytes across later frames and switches of model and agent", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, yield* withEpoch]
        const before = yield* epochOf(id)
        yield* log.append(id, [
          draft("session.next.agent.switched", { messageID: message(), agent: "plan" }),
          draft("session.next.model.switched", { messageID: message(), model: { providerID: "p", id: "other" } }),
          draft("session.next.request.framed", { hash: "another", system: ["Plan.", baseline] })
        ])
        assert.deepStrictEqual(yield* epochOf(id), before)
      })
    )

    it.effect("EP-8: after a compaction the old baseline and its updates stay until a frame introduces another", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, yield* withEpoch]
        const tuesday: Snapshot = { ...told, "daybook/date": { value: "Tuesday" } }
        yield* log.append(id, [compacted(), updated(told, tuesday, "Today is Tuesday.")])
        assert.deepStrictEqual(yield* epochOf(id), {
          baseline,
          snapshot: tuesday,
          baselineSeq: 0,
          compactedSeq: 2,
          toldSeq: 3
        })
        const fresh: Snapshot = { "daybook/date": { value: "Wednesday" } }
        yield* log.append(id, [introduced(fresh, "Today is Wednesday.", 3)])
        assert.deepStrictEqual(yield* epochOf(id), {
          baseline: "Today is Wednesday.",
          snapshot: fresh,
          baselineSeq: 3,
          compactedSeq: 2,
          toldSeq: 3
        })
      })
    )

    it.effect("CX-51: a session that was removed and created again under its id has an epoch of its own", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, yield* withEpoch]
        yield* epochOf(id)
        yield* log.remove(id)
        assert.isUndefined(yield* epochOf(id))
        yield* begin(id)
        const fresh: Snapshot = { "daybook/date": { value: "Wednesday" } }
        yield* log.append(id, [introduced(fresh, "Today is Wednesday.", 0)])
        assert.deepInclude(yield* epochOf(id), { baseline: "Today is Wednesday.", snapshot: fresh })
      })
    )

    it.effect("EP-9: a move ends the epoch, and the next frame that introduces a baseline begins another", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, yield* withEpoch]
        yield* log.append(id, [draft("session.next.moved", { location: { directory: "/elsewhere" } })])
        assert.isUndefined(yield* epochOf(id))
        yield* log.append(id, [introduced(told, baseline, 2)])
        assert.deepInclude(yield* epochOf(id), { baseline, snapshot: told, baselineSeq: 2 })
      })
    )
  })
