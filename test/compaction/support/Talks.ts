/** Sessions that fill a small context window: their agent, their messages, and their summaries. */
import { Effect, Stream } from "effect"
import type { Agent } from "../../../packages/core/src/domain/Agent.ts"
import type { Rule } from "../../../packages/core/src/domain/Rule.ts"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import type { SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import { allUserTexts, eventTypes, newSession, runtime, say } from "../../support/Harness.ts"
import { finish, says, type Script, ScriptedModel, type SeenRequest, textParts } from "../../support/ScriptedModel.ts"

/** An agent with a short prompt and only the named tools. */
export const brief = (...tools: ReadonlyArray<string>): Agent => ({
  name: "build",
  prompt: "Be brief.",
  permissions: [
    { permission: "*", resource: "*", verdict: "deny" },
    ...tools.map((permission): Rule => ({ permission, resource: "*", verdict: "allow" }))
  ]
})

/** A budget of 2,000 tokens, of which a checkpoint keeps 200. */
export const window = { contextTokens: 3_000, outputTokens: 500 }
export const compaction = { reserveTokens: 1_000, keepRecentTokens: 200 }

/** The runtime with that agent and window. */
export const narrow = (
  options: Parameters<typeof runtime>[0] = {},
  model: Parameters<typeof runtime>[1] = {}
): ReturnType<typeof runtime> => runtime({ agents: [brief()], compaction, ...options }, { ...window, ...model })

/** A text of about this many tokens, identified by its first word. */
export const long = (name: string, tokens: number): string => `${name} ${"x".repeat(Math.max(0, tokens * 4 - 8))}`

/** A summary with every section. */
export const summary = (goal: string): string =>
  [
    `## Goal\n${goal}`,
    "## Constraints & Preferences\n(none)",
    "## Progress",
    "### Done\n(none)",
    "### In Progress\n(none)",
    "### Blocked\n(none)",
    "## Key Decisions\n(none)",
    "## Next Steps\n(none)",
    "## Critical Context\n(none)",
    "## Relevant Files\n(none)"
  ].join("\n\n")

/** A whole answer of one text, with the given usage. */
export const counted = (text: string, inputTokens: number, outputTokens: number): Script =>
  Stream.fromIterable([
    ...textParts("t", text),
    { ...finish(), usage: { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens } }
  ])

/** A provider's error for a request that exceeds the window. */
export const tooLong: Script = Stream.fromIterable([
  { type: "error", error: { type: "invalid_request_error", message: "prompt is too long: 9000 tokens > 3000 maximum" } }
])

/** A prompt and its answer, each of about this many tokens; consumes the request. */
export const exchange = Effect.fnUntraced(function* (
  sessionID: SessionID,
  name: string,
  { prompt = 500, answer = 100 }: { readonly prompt?: number; readonly answer?: number } = {}
) {
  const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
  yield* model.answer(says(long(`${name}-answer`, answer)))
  yield* say(sessionID, long(name, prompt))
  const request = yield* model.request
  yield* sessions.wait(sessionID)
  return request
})

/** Whether a request asks for a summary. */
export const asksForSummary = (request: Pick<SeenRequest, "prompt">): boolean =>
  allUserTexts(request).some((text) => text.includes("Use exactly this form"))

/** The text of the checkpoint in a request. */
export const checkpointIn = (request: Pick<SeenRequest, "prompt">): string | undefined =>
  allUserTexts(request).find((text) => text.startsWith("<conversation-checkpoint>"))

/** A session with an exchange for each of these names, 600 tokens each. */
export const filled = Effect.fnUntraced(function* (...names: ReadonlyArray<string>) {
  const { id } = yield* newSession()
  for (const name of names) yield* exchange(id, name)
  return id
})

/** A session that overflows with the next prompt of some length. */
export const full = filled("one", "two", "three")

/** The outcomes of a session's compactions, in order. */
export const compactions = (id: SessionID) =>
  Effect.map(eventTypes(id), (types) =>
    types.filter((type) => type.includes(".compaction.")).map((type) => type.replace("session.next.compaction.", ""))
  )
