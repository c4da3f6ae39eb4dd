/** Tells which skills the turn's agent may load, and when to use them. Spec: specs/context.md CX-29. */
import { Context, Effect, Schema } from "effect"
import { verdictOf } from "../../domain/Rule.ts"
import type { Skills } from "../Skills.ts"
import { absent, available, type ContextSource, source } from "../SystemContext.ts"

const Guidance = Schema.Array(Schema.Struct({ name: Schema.String, description: Schema.String }))
type Guidance = typeof Guidance.Type

const list = (skills: Guidance) => skills.map(({ description, name }) => `- ${name}: ${description}`).join("\n")

/** The permission to load a skill; the resource is the skill's name. */
export const skillPermission = "skill"

export const skillGuidance = (skills: Context.Tag.Service<typeof Skills>): ContextSource =>
  source({
    key: "agent/skills",
    schema: Guidance,
    load: ({ agent }) =>
      Effect.map(skills.list, (all) => {
        const usable = all.filter(({ name }) => verdictOf(agent.permissions, skillPermission, name) !== "deny")
        return usable.length === 0 ? absent : available(usable.map(({ description, name }) => ({ name, description })))
      }),
    baseline: (skills) =>
      `Skills hold instructions for work of a certain kind. Before such work, load the one that fits with the tool "skill" ` +
      `and follow it:\n${list(skills)}`,
    update: (_, skills) =>
      `The skills that can be loaded are these now, in place of those named before:\n${list(skills)}`,
    removed: () => "There are no skills to load any more; those named before are gone."
  })
