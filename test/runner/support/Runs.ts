/** Shared helpers of the runner's tests: tools that a test holds open, and readers of recorded events. */
import { Tool } from "@effect/ai"
import { Deferred, Effect, Exit, Queue, Schema } from "effect"
import type { ToolDeclined, ToolFailure, ToolStorageError } from "../../../packages/core/src/domain/ToolError.ts"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import { HostTools } from "../../../packages/core/src/tool/HostTools.ts"
import { define, type ToolCall } from "../../../packages/core/src/tool/ToolDefinition.ts"
import { MessageID, type SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import type { Message } from "../../../packages/log/src/domain/Message.ts"
import { draft, type EventOfType, type SessionEvent } from "../../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import type { SeenRequest } from "../../support/ScriptedModel.ts"
import { waitingFor } from "../../support/Waiting.ts"

/** Registers a host tool until the scope closes. */
export const tool = (
  name: string,
  handler: (call: ToolCall) => Effect.Effect<string, ToolFailure | ToolDeclined | ToolStorageError>
) =>
  Effect.flatMap(HostTools, (host) =>
    host.register([define(Tool.make(name, { success: Schema.String }), { handler: (_, call) => handler(call) })])
  )

/** A tool that reports when a call begins, and answers when the test opens its gate. */
export const gatedTool = Effect.fnUntraced(function* (name: string) {
  const begun = yield* Queue.unbounded<string>()
  const stopped = yield* Queue.unbounded<string>()
  const gate = yield* Deferred.make<void>()
  yield* tool(name, ({ callID }) =>
    Effect.zipRight(Queue.offer(begun, callID), Deferred.await(gate)).pipe(
      Effect.as(`${name} ${callID} is done`),
      Effect.onInterrupt(() => Queue.offer(stopped, callID))
    )
  )
  return {
    /** The next call that began. */
    begun: waitingFor(`a call of ${name} to begin`)(Queue.take(begun)),
    /** The next call that was interrupted. */
    stopped: waitingFor(`a call of ${name} to be interrupted`)(Queue.take(stopped)),
    open: Deferred.succeed(gate, undefined)
  }
})

/** Gives a session a model that its host does not have, as if it had it once. */
export const toUnknownModel = (sessionID: SessionID) =>
  Effect.flatMap(EventLog, (log) =>
    log.append(sessionID, [
      draft("session.next.model.switched", {
        messageID: MessageID.make(`msg_unknown-${sessionID.slice(4)}`),
        model: { providerID: "scripted", id: "unknown" }
      })
    ])
  )

/** All durable events of a session. */
export const eventsOf = Effect.fnUntraced(function* (sessionID: SessionID) {
  const log = yield* EventLog
  const events: Array<SessionEvent> = []
  let after = -1
  for (;;) {
    const page = yield* log.read({ sessionID, after })
    events.push(...page.events)
    if (!page.hasMore) return events
    after = page.cursor
  }
})

/** The data of a session's events of one type, in order. */
export const dataOf = <Type extends SessionEvent["type"]>(sessionID: SessionID, type: Type) =>
  Effect.map(eventsOf(sessionID), (events) =>
    events
      .filter((event): event is EventOfType<Type> => event.type === type)
      // The union's data does not follow the narrowed type parameter.
      .map((event) => event.data as EventOfType<Type>["data"])
  )

/** The tag of the error that a run fails with, `undefined` if it succeeds. */
export const failureOf = <A, E extends { readonly _tag: string }, R>(run: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.exit(run), (exit) =>
    Exit.isSuccess(exit) ? undefined : exit.cause._tag === "Fail" ? exit.cause.error._tag : exit.cause._tag
  )

/** The visible transcript. */
export const transcript = (sessionID: SessionID): Effect.Effect<ReadonlyArray<Message>, never, Sessions> =>
  Effect.orDie(
    Effect.flatMap(Sessions, (sessions) =>
      Effect.map(sessions.messages({ sessionID, limit: 500 }), ({ items }) => items)
    )
  )

/** The system texts of a request. */
export const systemTexts = ({ prompt }: Pick<SeenRequest, "prompt">): ReadonlyArray<string> =>
  prompt.content.flatMap((message) => (message.role === "system" ? [message.content] : []))

/** The tool results in a request: call id and result. */
export const resultsIn = ({ prompt }: Pick<SeenRequest, "prompt">): ReadonlyArray<readonly [string, unknown]> =>
  prompt.content.flatMap((message) =>
    message.role === "tool" ? message.content.map((part) => [part.id, part.result] as const) : []
  )
