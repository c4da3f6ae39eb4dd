/** What the tests of `task` share: models that play a part by what they were told, and readers of who started whom. */
import { Effect } from "effect"
import type { Agent } from "../../packages/core/src/domain/Agent.ts"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import type * as Daybook from "../../packages/embedded/src/Daybook.ts"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import type { EventOfType } from "../../packages/log/src/events/SessionEvents.ts"
import { dataOf, resultsIn } from "../runner/support/Runs.ts"
import { runtime as gated, GatedModel, type Held } from "../session/support/GatedModel.ts"
import { userTexts } from "../support/Harness.ts"
import { callParts, calls, says, type Script } from "../support/ScriptedModel.ts"

/** The runtime, in memory unless a file is given. */
export const family = (options: Partial<Daybook.Options> = {}) => gated({ filename: ":memory:", ...options })

export const allowing = (name: string, more: Partial<Agent> = {}): Agent => ({
  name,
  permissions: [{ permission: "*", resource: "*", verdict: "allow" }],
  ...more
})

/** What a model is told first, and how many results it has read since. */
export interface Turn {
  readonly told: string
  readonly results: ReadonlyArray<readonly [string, unknown]>
  readonly offered: ReadonlyArray<string>
}

const turnOf = (held: Held): Turn => ({
  told: userTexts({ prompt: held.prompt })[0] ?? "",
  results: resultsIn(held),
  offered: held.tools.map(({ name }) => name)
})

/** Answers every request as the part says, each after its gate, until the scope closes; keeps what was asked. */
export const play = Effect.fnUntraced(function* (
  part: (turn: Turn) => Script,
  gate?: (turn: Turn) => Effect.Effect<void>
) {
  const model = yield* GatedModel
  const seen: Array<Turn> = []
  yield* Effect.forkScoped(
    Effect.forever(
      Effect.flatMap(model.request, (held) => {
        const turn = turnOf(held)
        seen.push(turn)
        const answer = held.answer(part(turn))
        return gate === undefined ? answer : Effect.forkScoped(Effect.zipRight(gate(turn), answer))
      })
    )
  )
  return seen
})

/** What is handed out, and to whom. */
export type Task = string | { readonly agent: string; readonly prompt: string }

/** One call of `task` for each. */
export const hands = (
  ...prompts: ReadonlyArray<string | { readonly agent: string; readonly prompt: string }>
): Script =>
  calls(
    ...prompts.map((given, index) => {
      const asked = typeof given === "string" ? { prompt: given } : given
      return callParts(`task-${index}`, "task", { description: `about ${asked.prompt}`, ...asked })
    })
  )

/** Hands the prompts out, then says what came back. */
export const delegates = (turn: Turn, ...prompts: ReadonlyArray<Task>): Script =>
  turn.results.length === 0 ? hands(...prompts) : says(`heard ${turn.results.length}`)

type Reported = EventOfType<"session.next.tool.progress">["data"]

/** The children that a session's calls of `task` reported. */
export const childrenOf = Effect.fnUntraced(function* (sessionID: SessionID) {
  const sessions = yield* Sessions
  const reports: ReadonlyArray<Reported> = yield* dataOf(sessionID, "session.next.tool.progress")
  const { items } = yield* sessions.list({ limit: 500 })
  return reports.flatMap(({ structured }) => items.filter(({ id }) => id === structured["sessionID"]))
})
