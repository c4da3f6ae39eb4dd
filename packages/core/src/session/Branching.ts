/**
 * Moves a session's leaf through its tree, and labels messages. A move is one event, written under the session's
 * ownership while nothing runs; it names the history that it continues. Spec: HP-20..HP-28 in specs/sessions.md
 * (CP-16).
 */
import { Effect, Struct } from "effect"
import * as HistoryPath from "@daybook/log/domain/HistoryPath"
import { MessageNotFound } from "@daybook/log/domain/HistoryPath"
import { Identifiers, isMessageID, type MessageID, type SessionID } from "@daybook/log/domain/Identifiers"
import { edited, type Message } from "@daybook/log/domain/Message"
import { validate } from "@daybook/log/domain/InvalidInput"
import { PromptInput } from "@daybook/log/domain/Values"
import { type Draft, draft } from "@daybook/log/events/SessionEvents"
import { EventLog, type OwnerToken } from "@daybook/log/log/EventLog"
import { type Leaf, type TreePlace, SessionStore } from "@daybook/log/store/SessionStore"
import { Lineage } from "../agent/Lineage.ts"
import { defaultSettings, limitsOf } from "../compaction/Limits.ts"
import {
  conversationOf,
  fileOperations,
  noFiles,
  nothingSaid,
  reserveTokens,
  summarize,
  SummaryFailed,
  summaryPrompt,
  summaryTokens,
  withFiles
} from "../compaction/Summary.ts"
import { type ModelResolutionError, ModelResolver } from "../model/ModelResolver.ts"
import { nothingSpent, spentFields } from "../request/TextRequest.ts"
import { withoutRefused } from "../request/Withholding.ts"
import * as Boundary from "../runner/Boundary.ts"
import { uncontested } from "../support/Contested.ts"
import { BranchNotSummarized, type BudgetExceeded, type PriceUnknown } from "../domain/RunFailure.ts"
import { modelOf } from "../runner/Preparation.ts"
import type { Existing } from "./Placement.ts"
import { SessionExecution } from "./SessionExecution.ts"
import { type Branched, type BranchOptions, Label, type LabelOptions } from "./SessionOptions.ts"

export { BranchNotSummarized } from "../domain/RunFailure.ts"

/** Why no summary was requested: no model or agent, or a spent budget. */
export type SummaryRefused =
  ModelResolutionError | BudgetExceeded | PriceUnknown | Effect.Effect.Error<ReturnType<Lineage["Type"]["agentOf"]>>

/** Messages per read. */
const pageSize = 50

/** Summarizes a branch before it is left; a failed or interrupted summary moves nothing, and its usage is charged. */
const makeBranchSummary = Effect.gen(function* () {
  const log = yield* EventLog
  const store = yield* SessionStore
  const lineage = yield* Lineage
  const models = yield* ModelResolver
  const identifiers = yield* Identifiers
  const budget = Boundary.makeBudgetCheck(store, {})

  /** The messages of the path that the next history does not have, newest first, back to a checkpoint. */
  const left = Effect.fnUntraced(function* (sessionID: SessionID, next: HistoryPath.HistoryPath) {
    const messages: Array<Message> = []
    let cursor: number | undefined
    do {
      const page = yield* store.messages({ sessionID, order: "desc", limit: pageSize, cursor })
      for (const message of page.items) {
        if (HistoryPath.contains(next, message.seq)) return messages
        messages.push(message)
        if (message.type === "compaction") return messages
      }
      cursor = page.cursor
    } while (cursor !== undefined)
    return messages
  })

  /** The event that holds the summary. */
  return Effect.fn("BranchSummary.of")(function* (
    sessionID: SessionID,
    owner: OwnerToken,
    leaf: Leaf,
    next: HistoryPath.HistoryPath
  ) {
    const messageID = yield* identifiers.message
    const from: { readonly from?: MessageID } = leaf.messageID === undefined ? {} : { from: leaf.messageID }
    const messages = edited(yield* left(sessionID, next))
    const session = yield* store.get(sessionID)
    const agent = yield* lineage.agentOf(session)
    const settings = Struct.omit(agent.settings ?? {}, "stop")
    const summarizer = (maxOutputTokens: number) =>
      models.resolve(modelOf(session, agent), { ...settings, maxOutputTokens })
    const model = yield* summarizer(summaryTokens)
    const limits = limitsOf(model.info, { ...defaultSettings, reserveTokens })
    const conversation = conversationOf(withoutRefused(messages, model.info.ref), limits.budget, model.countTokens)
    if (conversation === "") return draft("session.next.branch.summarized", { messageID, text: nothingSaid, ...from })
    yield* budget(session, model.info)
    const spent = nothingSpent()
    const charge = (details: string) =>
      spent.tokens === undefined
        ? Effect.void
        : log.append(
            sessionID,
            [
              draft("session.next.compaction.failed", {
                messageID,
                error: { type: "branch.summary", message: details },
                ...spentFields(spent)
              })
            ],
            { owner }
          )
    const text = yield* summarize({
      log,
      sessionID,
      owner,
      messageID,
      model,
      summarizer: (tokens) => Effect.orElseSucceed(summarizer(tokens), () => model),
      limits: { ...limits, summary: Math.min(summaryTokens, limits.summary) },
      prompt: summaryPrompt(conversation),
      spent
    }).pipe(
      Effect.onInterrupt(() => Effect.ignoreLogged(charge("interrupted"))),
      Effect.catchIf(
        (error) => error instanceof SummaryFailed,
        ({ error }) =>
          Effect.zipRight(
            charge(error.message),
            Effect.fail(new BranchNotSummarized({ sessionID, details: error.message }))
          )
      )
    )
    const files = fileOperations(messages.toReversed(), noFiles)
    return draft("session.next.branch.summarized", {
      messageID,
      text: withFiles(text, files),
      ...from,
      readFiles: files.read.paths,
      modifiedFiles: files.modified.paths,
      ...spentFields(spent)
    })
  })
})

export type BranchSummary = Effect.Effect.Success<typeof makeBranchSummary>

/** Where history continues: after a message, or before the first one. */
export interface Target {
  readonly messageID: MessageID | undefined
  readonly path: HistoryPath.HistoryPath
}

const root: Target = { messageID: undefined, path: [] }

/** A prompt is branched off before it, so that another one takes its place (CP-17). */
export const targetOf = ({ before, id, parentID, through, type }: TreePlace): Target =>
  type === "user" ? { messageID: parentID, path: before } : { messageID: id, path: through }

const promptFields = Struct.keys(PromptInput.fields)

/** Finds messages and their prompts in a session's tree. */
export const makePlaces = Effect.gen(function* () {
  const store = yield* SessionStore
  return {
    placeOf: Effect.fnUntraced(function* (sessionID: SessionID, messageID: string) {
      const place = isMessageID(messageID) ? yield* store.place(sessionID, messageID) : undefined
      return place ?? (yield* new MessageNotFound({ sessionID, messageID }))
    }),
    /** The prompt of a user message, to be edited and sent again. */
    promptOf: Effect.fnUntraced(function* (sessionID: SessionID, { id, type }: TreePlace) {
      const message = type === "user" ? yield* store.message(sessionID, id) : undefined
      return message?.type === "user" ? { prompt: Struct.pick(message, ...promptFields) } : {}
    })
  }
})

export const make = Effect.fnUntraced(function* ({ changes }: Existing) {
  const log = yield* EventLog
  const store = yield* SessionStore
  const execution = yield* SessionExecution
  const summaryOf = yield* makeBranchSummary
  const { placeOf, promptOf } = yield* makePlaces

  /** Appends the move to where `find` says, unless the leaf is there. An event that came between: look again. */
  const moveTo = <E, R>(
    sessionID: SessionID,
    owner: OwnerToken,
    find: Effect.Effect<Target, E, R>,
    then: ReadonlyArray<Draft> = []
  ) =>
    uncontested(
      Effect.gen(function* () {
        const expectedSeq = yield* log.latest(sessionID)
        const { messageID, path } = yield* find
        const leaf = yield* store.leaf(sessionID)
        const moved = leaf.messageID !== messageID
        if (moved) {
          const move = draft("session.next.leaf.moved", { ...(messageID === undefined ? {} : { messageID }), path })
          yield* log.append(sessionID, [move, ...then], { expectedSeq, owner })
        }
        return { moved, ...(messageID === undefined ? {} : { leafID: messageID }) } satisfies Branched
      })
    )

  const branch = Effect.fn("Sessions.branch")(function* (
    sessionID: SessionID,
    { messageID, summary = false }: Omit<BranchOptions, "sessionID">
  ) {
    const prompt = yield* promptOf(sessionID, yield* placeOf(sessionID, messageID))
    // The history up to a message ends before the next one, which may have come since.
    const find = Effect.map(placeOf(sessionID, messageID), targetOf)
    const summarized = Effect.fnUntraced(function* (owner: OwnerToken) {
      const [target, leaf] = [yield* find, yield* store.leaf(sessionID)]
      if (!summary || leaf.messageID === target.messageID) return []
      return [yield* summaryOf(sessionID, owner, leaf, target.path)]
    })
    const moved = yield* execution.atRest(sessionID, (owner) =>
      Effect.flatMap(summarized(owner), (drafts) =>
        Effect.map(moveTo(sessionID, owner, find, drafts), (moved): Branched => {
          const [made] = drafts
          return made === undefined ? moved : { ...moved, leafID: made.data.messageID, summaryID: made.data.messageID }
        })
      )
    )
    return { ...moved, ...prompt } satisfies Branched
  })

  const reset = Effect.fn("Sessions.reset")((sessionID: SessionID) =>
    execution.atRest(sessionID, (owner) => moveTo(sessionID, owner, Effect.succeed(root)))
  )

  const label = Effect.fn("Sessions.label")(function* (
    sessionID: SessionID,
    { label: given, messageID }: Omit<LabelOptions, "sessionID">
  ) {
    const place = yield* placeOf(sessionID, messageID)
    const label = given === undefined ? undefined : yield* validate("label", Label, given)
    const event = { messageID: place.id, ...(label === undefined ? {} : { label }) }
    yield* log.append(sessionID, [draft("session.next.labeled", event)])
  })

  return {
    branch: ({ sessionID, ...options }: BranchOptions) => changes(branch)(sessionID, options),
    reset: changes(reset),
    label: ({ sessionID, ...options }: LabelOptions) => changes(label)(sessionID, options)
  }
})
