/**
 * `daybook resume`: runs the session's waiting prompts and unfinished work. `daybook compact`: summarizes its conversation.
 * Spec: CL-17, CL-88, CL-89.
 */
import { Effect, Either, Option, Stream } from "effect"
import { Sessions } from "@daybook/core/session/Sessions"
import { Identifiers, type MessageID, type SessionID } from "@daybook/log/domain/Identifiers"
import { draft } from "@daybook/log/events/SessionEvents"
import { EventLog } from "@daybook/log/log/EventLog"
import { SessionStore } from "@daybook/log/store/SessionStore"
import * as Flags from "../arguments/Flags.ts"
import * as Folder from "../arguments/Folder.ts"
import * as RunMode from "../arguments/RunMode.ts"
import * as SessionReference from "../arguments/SessionReference.ts"
import { verb } from "../arguments/Verb.ts"
import { Remote } from "../host/Remote.ts"
import { inMode, modeCounts, runFollower, told, trusting, withRunning, withSessions } from "../host/Runtime.ts"
import { compacted } from "../render/EventLine.ts"
import { ActivityFailed, Interrupted } from "../support/Errors.ts"
import { Output } from "../terminal/Output.ts"

const noWait = Flags.toggle("no-wait", "only request it; the process that runs the session now or next does it")

/** Requests a compaction, runs the session and waits. */
const runCompact = Effect.fn("Command.compact")(function* (given: string | undefined) {
  const log = yield* EventLog
  const sessions = yield* Sessions
  const { id: sessionID, location } = yield* SessionReference.resolveHere(given)
  yield* trusting(location.directory)
  const after = yield* log.latest(sessionID)
  const messageID = yield* sessions.compact(sessionID)
  const RunFollower = yield* runFollower
  const followed = yield* Effect.either(
    RunFollower.follow({
      sessionID,
      json: false,
      silent: true,
      start: Effect.succeed({ after, done: Effect.asVoid(sessions.wait(sessionID)) })
    })
  )
  if (Either.isLeft(followed) && followed.left instanceof Interrupted) return yield* followed.left
  const told = yield* outcome(sessionID, after, messageID)
  if (told !== undefined) yield* (yield* Output).write(`${told}\n`)
  // The compaction's outcome is reported first; a failure of waiting prompts follows it.
  yield* followed
  if (told === undefined) {
    return yield* new ActivityFailed({
      message: `the compaction of ${sessionID} has not started; it runs when the session runs next`
    })
  }
})

/** The outcome of the request; undefined while there is none. */
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
  return yield* new ActivityFailed({ message: `nothing of ${sessionID} was summarized: ${message}`, type: kind })
})

/** Only requests: this process wakes nothing, because it would stop it immediately. A server runs it. */
const ask = Effect.fn("Command.compact.ask")(function* (given: string | undefined) {
  const session = yield* SessionReference.resolveHere(given)
  const { compaction } = yield* (yield* SessionStore).get(session.id)
  if ((yield* Remote) !== undefined) yield* (yield* Sessions).compact(session.id)
  else if (compaction?.state !== "requested") {
    const messageID = yield* (yield* Identifiers).message
    yield* (yield* EventLog).append(session.id, [draft("session.next.compaction.requested", { messageID })])
  }
  yield* (yield* Output).note(`${session.id} will be summarized when it runs next\n`)
})

export const compact = verb({
  name: "compact",
  summary: "summarize a session's conversation to free context",
  words: "[SESSION]",
  details: [
    `${SessionReference.lastUsed} ` +
      "The model writes the summary; from then on it reads the summary and the latest messages. Stored messages do not " +
      "change. The command waits and prints the sizes of the request and the summary, or why there is no summary. Then it " +
      "runs the prompts in the inbox, like daybook resume."
  ],
  given: { session: Flags.optional("SESSION"), noWait, trust: Flags.trust },
  examples: [
    ["daybook compact fix", "summarizes the session called fix now"],
    ["daybook compact --no-wait", "requests a summary of the last session before its next turn"]
  ],
  overServer: true,
  run: ({ noWait, session, trust }) => {
    const given = session
    return noWait ? withSessions(ask(given)) : withRunning(runCompact(given)).pipe(told(trust))
  }
})

const runResume = Effect.fn("Command.resume")(function* (given: string | undefined, json: boolean, reasoning: boolean) {
  const sessions = yield* Sessions
  const session = yield* SessionReference.resolveHere(given)
  yield* Folder.usable(session.location.directory, session.id)
  yield* modeCounts(session.id)
  yield* trusting(session.location.directory)
  const RunFollower = yield* runFollower
  yield* RunFollower.follow({
    sessionID: session.id,
    json,
    reasoning,
    start: RunFollower.resumed(session.id, sessions.resume(session.id))
  })
})

export const resume = verb({
  name: "resume",
  summary: "run a session now: prompts in its inbox, or work that was cut off",
  words: "[SESSION]",
  details: [
    `${SessionReference.lastUsed} ` +
      "It runs at least one turn. If a process died during a tool call, the model is told that the call was cut off, and the call is never run again."
  ],
  given: {
    session: Flags.optional("SESSION"),
    trust: Flags.trust,
    ...RunMode.flags,
    noReasoning: Flags.noReasoning,
    json: Flags.json
  },
  examples: [["daybook resume", "continues the session used last in this folder"]],
  overServer: true,
  run: ({ json, noReasoning, session, trust, ...given }) =>
    withRunning(runResume(session, json, !noReasoning)).pipe(told(trust), inMode(given))
})
