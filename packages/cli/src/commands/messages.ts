/** `daybook messages` and `daybook show`: the transcript as a list, and in full. Spec: CL-15, CL-16. */
import * as Args from "@effect/cli/Args"
import * as Command from "@effect/cli/Command"
import { Chunk, Clock, Effect, Option, Stream } from "effect"
import * as CutOff from "@daybook/log/coordination/CutOff"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { Message } from "@daybook/log/domain/Message"
import { Inbox } from "@daybook/log/store/Inbox"
import { SessionStore } from "@daybook/log/store/SessionStore"
import * as Flags from "../arguments/Flags.ts"
import * as Folder from "../arguments/Folder.ts"
import * as SessionReference from "../arguments/SessionReference.ts"
import type { Verb } from "../arguments/Verb.ts"
import { withReader } from "../host/Runtime.ts"
import { messageJson, messageLine, messageText } from "../render/MessageText.ts"
import { sessionHead } from "../render/SessionLine.ts"
import { Output } from "../terminal/Output.ts"

const after = Flags.integer("after", "SEQ", "only messages after this sequence number", 0)
const limit = Flags.integer("limit", "N", "at most N messages (default: 50)", 1)

const runMessages = Effect.fn("Command.messages")(function* (options: {
  readonly session: string | undefined
  readonly after: number | undefined
  readonly limit: number
  readonly json: boolean
}) {
  const output = yield* Output
  const sessions = yield* SessionStore
  const session = yield* SessionReference.resolve(options.session, yield* Folder.current)
  const line = (message: Message) =>
    options.json ? `${messageJson(message, output.terminal)}\n` : messageLine(message)
  let left = options.limit
  let cursor = options.after
  for (;;) {
    const page = yield* sessions.messages({ sessionID: session.id, limit: Math.min(left, 500), cursor })
    yield* output.write(page.items.map(line).join(""))
    const last = page.items.at(-1)
    left -= page.items.length
    if (last === undefined || page.cursor === undefined) return
    cursor = last.seq
    if (left <= 0) return yield* output.note(`more: --after ${last.seq} (${page.total} in all)\n`)
  }
})

export const messages = {
  name: "messages",
  summary: "list a session's messages in order, one per line",
  words: "[SESSION]",
  details: [
    "SESSION is an id or a title. Default: the session used last in this folder, or else the one used last anywhere."
  ],
  flags: [after, limit, Flags.json],
  examples: [
    ["daybook messages", "the first messages of the last session"],
    ["daybook messages fix --json --limit 1000", "whole messages with their parts, as JSON"]
  ],
  command: Command.make(
    "messages",
    {
      session: Args.optional(Args.text({ name: "SESSION" })),
      after: after.options,
      limit: limit.options,
      json: Flags.json.options
    },
    (given) =>
      withReader(
        runMessages({
          session: Option.getOrUndefined(given.session),
          after: Option.getOrUndefined(given.after),
          limit: Option.getOrElse(given.limit, () => 50),
          json: given.json
        })
      )
  )
} satisfies Verb

const allMessages = (sessionID: SessionID) =>
  Stream.unwrap(
    Effect.map(SessionStore, (sessions) =>
      Stream.paginateChunkEffect(undefined as number | undefined, (cursor) =>
        Effect.map(sessions.messages({ sessionID, limit: 50, cursor }), (page) => {
          const last = page.items.at(-1)
          return [
            Chunk.unsafeFromArray(page.items),
            last === undefined || page.cursor === undefined ? Option.none() : Option.some(last.seq)
          ] as const
        })
      )
    )
  )

const runShow = Effect.fn("Command.show")(function* (options: {
  readonly session: string | undefined
  readonly json: boolean
}) {
  const output = yield* Output
  const sessions = yield* SessionStore
  const session = yield* SessionReference.resolve(options.session, yield* Folder.current)
  if (!options.json) {
    const metrics = yield* sessions.metrics(session.id, yield* Clock.currentTimeMillis)
    const [found = session] = yield* CutOff.findHere([session])
    yield* output.write(`${sessionHead(found, metrics)}\n`)
  }
  yield* Stream.runForEachChunk(allMessages(session.id), (page) =>
    output.write(
      Chunk.toReadonlyArray(page)
        .map((message) =>
          options.json ? `${messageJson(message, output.terminal)}\n` : messageText(message, output.terminal)
        )
        .join("")
    )
  )
  const waiting = options.json ? [] : yield* (yield* Inbox).waiting(session.id, { limit: 1_000 })
  if (waiting.length > 0) {
    const inputs = waiting.length === 1 ? "1 prompt waits" : `${waiting.length} prompts wait`
    yield* output.note(`${inputs} in the inbox: daybook resume ${session.id}\n`)
  }
})

export const show = {
  name: "show",
  summary: "print a session's transcript",
  words: "[SESSION]",
  details: [
    "SESSION is an id or a title. Default: the session used last in this folder, or else the one used last anywhere. " +
      "Long tool results are truncated; daybook messages --json prints them in full."
  ],
  flags: [Flags.json],
  examples: [
    ["daybook show | less", "the last session"],
    ["daybook show ses_01JD", "the session with this id"]
  ],
  command: Command.make(
    "show",
    { session: Args.optional(Args.text({ name: "SESSION" })), json: Flags.json.options },
    ({ session, json }) => withReader(runShow({ session: Option.getOrUndefined(session), json }))
  )
} satisfies Verb
