/** Implements the session store on SQL, over the reading connection. Contract: `SessionStore.ts`. */
import { Effect, Either, Layer } from "effect"
import { edited } from "../domain/Message.ts"
import type { SessionID } from "../domain/Identifiers.ts"
import { ReadSql } from "../storage/Database.ts"
import * as ActivityRows from "./ActivityRows.ts"
import { selectAttempts, selectContinued, selectLastWork } from "./ActivityRows.ts"
import { assemble, sessionsOf } from "./Assemble.ts"
import * as ContextRows from "./ContextRows.ts"
import { selectInstructionFiles } from "./ContextRows.ts"
import { selectBySeq } from "./Content.ts"
import { reading, readingTogether } from "./Reading.ts"
import { selectContextStart } from "./RequestRows.ts"
import { isAt, isOnlyOne } from "./SessionChecks.ts"
import * as SessionRows from "./SessionRows.ts"
import { selectAncestors, selectTodos, selectTreeEstimated, selectTreeUsage } from "./SessionRows.ts"
import { SessionStore } from "./SessionStore.ts"
import * as TranscriptRows from "./TranscriptRows.ts"
import * as TreeRows from "./TreeRows.ts"
import * as UndoRows from "./UndoRows.ts"

const make = Effect.gen(function* () {
  const sql = yield* ReadSql
  const contextRows = ContextRows.contextRows(sql)

  const ancestors: (typeof SessionStore.Service)["ancestors"] = Effect.fn("SessionStore.ancestors")((sessionID) =>
    Effect.flatMap(reading(selectAncestors(sql, sessionID)), sessionsOf)
  )

  const event = Effect.fn("SessionStore.event")(function* (sessionID: SessionID, seq: number) {
    const found = (yield* reading(selectBySeq(sql, sessionID, [seq]))).get(seq)
    return found === undefined ? undefined : yield* found
  })

  return SessionStore.of({
    get: SessionRows.get(sql),
    standing: SessionRows.standing(sql),
    snapshot: SessionRows.snapshot(sql),
    snapshots: SessionRows.snapshots(sql),
    addressed: SessionRows.addressed(sql),
    titled: SessionRows.titled(sql),
    list: SessionRows.list(sql),
    interrupted: SessionRows.interrupted(sql),
    isAt,
    isOnlyOne,
    ancestors,
    rootOf: (sessionID) => Effect.map(ancestors(sessionID), (line) => line.at(-1)?.id ?? sessionID),
    treeUsage: (sessionID) => reading(selectTreeUsage(sql, sessionID)),
    metrics: SessionRows.metrics(sql),
    treeEstimated: (sessionID) => reading(selectTreeEstimated(sql, sessionID)),
    event,
    undoable: UndoRows.undoable(sql),
    redoable: UndoRows.redoable(sql),
    todos: (sessionID) => reading(selectTodos(sql, sessionID)),
    instructionFiles: (sessionID, limit) => reading(selectInstructionFiles(sql, sessionID, limit)),
    message: TranscriptRows.message(sql),
    messages: TranscriptRows.messages(sql),
    tree: TreeRows.tree(sql),
    leaf: TreeRows.leaf(sql),
    place: TreeRows.place(sql),
    find: TreeRows.find(sql),
    continued: (sessionID, opening) => readingTogether(sql)(selectContinued(sql, sessionID, opening)),
    lastWork: (sessionID) => readingTogether(sql)(selectLastWork(sql, sessionID)),
    attempts: (sessionID) => readingTogether(sql)(selectAttempts(sql, sessionID)),
    contextRows,
    contextAt: Effect.fn("SessionStore.contextAt")((sessionID, at) =>
      readingTogether(sql)(selectContextStart(sql, sessionID, at))
    ),
    stepAt: ContextRows.stepAt(sql),
    context: (sessionID, baselineSeq) =>
      Effect.flatMap(contextRows(sessionID, baselineSeq), (rows) => Either.map(assemble(sessionID, rows), edited)),
    unsettledTools: ActivityRows.unsettledTools(sql),
    openStep: ActivityRows.openStep(sql)
  })
})

/** The read models over `ReadSql`. */
export const layer = Layer.effect(SessionStore, make)
