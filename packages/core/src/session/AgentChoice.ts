/** Checks which agent a session may use, and phrases a switch between agents. Spec: CR-4, RQ-54, IB-3. */
import { Effect, Option, Predicate, Schema } from "effect"
import { InvalidInput, validate } from "@daybook/log/domain/InvalidInput"
import { type Location, ModelRef } from "@daybook/log/domain/Values"
import type { Agents } from "../agent/Agents.ts"
import { type Agent, canLead } from "../domain/Agent.ts"
import type { ModelResolver } from "../model/ModelResolver.ts"

// Checks which model a session may be given: one that the host can use now.

/** The model, if it resolves. */
export const knownModel = Effect.fnUntraced(function* ({ resolve }: ModelResolver["Type"], asked: ModelRef) {
  const model = yield* validate("model", ModelRef, asked)
  yield* Effect.mapError(resolve(model), ({ message }) => new InvalidInput({ field: "model", details: message }))
  return model
})

/** The agent, if it may work here: as a primary agent, or for the parent session of a `child`. */
export const knownAgent = Effect.fnUntraced(function* (
  agents: Agents["Type"],
  agent: string,
  location: Location,
  child: boolean
) {
  const refuse = (details: string) => new InvalidInput({ field: "agent", details })
  const name = yield* validate("agent", Schema.String, agent)
  const found = yield* Effect.mapError(agents.get(name, location), ({ message }) => refuse(message))
  if (child || canLead(found)) return found
  return yield* refuse(`agent "${name}" is a subagent, which only other agents can start; choose another one`)
})

/** The reminders that both agents have for a switch. A missing agent has none (RQ-54). */
export const switchReminders = Effect.fnUntraced(function* (
  agents: Agents["Type"],
  current: string | undefined,
  to: Agent,
  location: Location
) {
  const from = Option.getOrUndefined(yield* Effect.option(agents.get(current, location)))
  return from?.name === to.name ? [] : [from?.leaveReminder, to.enterReminder].filter(Predicate.isNotUndefined)
})
