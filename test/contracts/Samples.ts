/** Small logs for the contracts' tests. Every session and message gets an id of its own, so that tests share a store. */
import { randomUUID } from "node:crypto"
import { Chunk, Effect, Option, Stream } from "effect"
import { MessageID, SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog, type ForeignEvent } from "../../packages/log/src/log/EventLog.ts"

/** A suffix that no other test uses, for ids in a shared store. */
export const unique = (): string => randomUUID().replaceAll("-", "")

export const session = (name: string = unique()): SessionID => SessionID.make(`ses_${name}`)
export const message = (name: string = unique()): MessageID => MessageID.make(`msg_${name}`)

/** The first event of a session's log. */
export const created = draft("session.created", { location: { directory: "/work" } })

/** An event without special rules, to fill logs. */
export const renamed = (title: string) => draft("session.next.renamed", { title })

export const admitted = (messageID: MessageID, text = "hello", delivery: "steer" | "queue" = "steer") =>
  draft("session.next.prompt.admitted", { messageID, prompt: { text }, delivery })

/** Creates a session with `count` further events in one append. */
export const begin = Effect.fnUntraced(function* (sessionID: SessionID, count = 0) {
  const log = yield* EventLog
  const more = Array.from({ length: count }, (_, index) => renamed(`title ${index + 1}`))
  return yield* log.append(sessionID, [created, ...more])
})

/** Every stored event of a session after the cursor, page by page. */
export const readAll = Effect.fnUntraced(function* (sessionID: SessionID, after = -1) {
  const log = yield* EventLog
  const pages = Stream.paginateChunkEffect(after, (cursor) =>
    Effect.map(
      log.read({ sessionID, after: cursor }),
      (page) => [Chunk.fromIterable(page.events), page.hasMore ? Option.some(page.cursor) : Option.none()] as const
    )
  )
  return Chunk.toReadonlyArray(yield* Stream.runCollect(pages))
})

/** A session's events in the form in which another log replays them. */
export const foreign = Effect.fnUntraced(function* (sessionID: SessionID) {
  const events = yield* readAll(sessionID)
  return events.map(({ created, data, id, seq, type, version }): ForeignEvent => ({
    id,
    sessionID,
    seq,
    type: `${type}.${version}`,
    created,
    data
  }))
})

/** Starts a request to the provider. */
export const step = (assistantMessageID: MessageID) =>
  draft("session.next.step.started", { assistantMessageID, agent: "build", model: { providerID: "p", id: "m" } })

interface Call {
  readonly messageID: MessageID
  readonly callID: string
  readonly tool: string
  readonly input: Readonly<Record<string, unknown>>
}

/** A call in a step, from its first event until the tool runs. */
export const call = ({ callID, input, messageID: assistantMessageID, tool }: Call) =>
  [
    draft("session.next.tool.input.started", { assistantMessageID, callID, name: tool }),
    draft("session.next.tool.input.ended", { assistantMessageID, callID, text: JSON.stringify(input) }),
    draft("session.next.tool.called", { assistantMessageID, callID, tool, input, provider: { executed: false } })
  ] as const

/** Tokens of requests with so much input, and so much output, that none came from a cache. */
export const tokens = (input: number, output = input === 0 ? 0 : 1) => ({
  input,
  output,
  reasoning: 0,
  cache: { read: 0, write: 0 }
})
