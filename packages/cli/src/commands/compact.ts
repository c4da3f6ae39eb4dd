/** `daybook compact`: have what the model is shown of a session summarised. Spec: CL-88, CL-89. */
import { draft, EventLog, Identifiers, Sessions, SessionStore, type MessageID, type SessionID } from "@daybook/core"
import { Args, Command } from "@effect/cli"
import { Effect, Either, Option, Stream } from "effect"
import { ActivityFailed, Interrupted } from "../Errors.ts"
import * as Flags from "../Flags.ts"
import * as Folder from "../Folder.ts"
import { Output } from "../Output.ts"
import { compacted } from "../render/CompactionText.ts"
import { told, trusting, turn, withRunning, withSessions } from "../Runtime.ts"
import * as SessionReference from "../SessionReference.ts"
import type { Verb } from "../Verb.ts"

const noWait = Flags.toggle("no-wait", "ask only; it is done when the session runs next, or by who runs it now")

/** Asks, runs the session and waits. */
const run = Effect.fn("Command.compact")(function* (given: string | undefined) {
  const log = yield* EventLog
  const sessions = yield* Sessions
  const { id: sessionID, location } = yield* SessionReference.resolve(given, yield* Folder.current)
  yield* trusting(location.directory)
  const after = yield* log.latest(sessionID)
  const messageID = yield* sessions.compact(sessionID)
  const Turn = yield* turn
  const followed = yield* Effect.either(
    Turn.follow({
      sessionID,
      json: false,
      silent: true,
      start: Effect.succeed({ after, done: Effect.asVoid(sessions.wait(sessionID)) })
    })
  )
  if (Either.isLeft(followed) && followed.left instanceof Interrupted) return yield* followed.left
  const told = yield* outcome(sessionID, after, messageID)
  if (told !== undefined) yield* (yield* Output).write(`${told}\n`)
  // What was asked for comes first; after it, or in its place, whatever else went wrong, as with a prompt that waited.
  yield* followed
  if (told === undefined) {
    return yield* new ActivityFailed({
      message: `the compaction of ${sessionID} was not begun; it is done when the session runs next`
    })
  }
})

/** What became of the request; undefined where nothing did so far. */
const outcome = Effect.fnUntraced(function* (sessionID: SessionID, after: number, messageID: MessageID) {
  const log = yield* EventLog
  const ended = yield* log.tailMarked({ sessionID, after }).pipe(
    Stream.takeWhile((item) => item.type !== "replay.complete"),
    Stream.filterMap((item) =>
      (item.type === "session.next.compaction.ended" || item.type === "session.next.compaction.failed") &&
      item.data.messageID === messageID
        ? Option.some(item)
        : Option.none()
    ),
    Stream.runHead
  )
  if (Option.isNone(ended)) return undefined
  const { data, type } = ended.value
  if (type === "session.next.compaction.ended") return compacted(data)
  const { message, type: kind } = data.error
  if (kind === "aborted") return yield* new Interrupted({ message: `the compaction of ${sessionID} was interrupted` })
  return yield* new ActivityFailed({ message: `nothing of ${sessionID} was summarised: ${message}`, type: kind })
})

/** Asks only: nothing is woken here, where it would be stopped at once. */
const ask = Effect.fn("Command.compact.ask")(function* (given: string | undefined) {
  const session = yield* SessionReference.resolve(given, yield* Folder.current)
  const { compaction } = yield* (yield* SessionStore).get(session.id)
  if (compaction?.state !== "requested") {
    const messageID = yield* (yield* Identifiers).message
    yield* (yield* EventLog).append(session.id, [draft("session.next.compaction.requested", { messageID })])
  }
  yield* (yield* Output).note(`${session.id} will be summarised when it runs next\n`)
})

export const compact = {
  name: "compact",
  summary: "have a session's conversation summarised, to make room",
  words: "[SESSION]",
  details: [
    "SESSION is an id or a title; without it, the session used last in this folder, else the one used last of all. " +
      "The model writes the summary; from then on it is shown that and the latest messages. Nothing that is stored " +
      "changes. It waits and prints how large the request was and the summary is, or why there is none. What waits in the inbox is " +
      "run after it, as with daybook resume."
  ],
  flags: [noWait, Flags.trust],
  examples: [
    ["daybook compact fix", "summarises the session called fix now"],
    ["daybook compact --no-wait", "has the last session summarised before its next turn"]
  ],
  command: Command.make(
    "compact",
    {
      session: Args.optional(Args.text({ name: "SESSION" })),
      noWait: noWait.options,
      trust: Flags.trust.options
    },
    ({ noWait, session, trust }) => {
      const given = Option.getOrUndefined(session)
      return noWait ? withSessions(ask(given)) : withRunning(run(given)).pipe(told(trust))
    }
  )
} satisfies Verb
