/** Checks invariants of a conversation of any length. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import { SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import { bodyOf, type Conversation, converse, open, type Step, stepsOf } from "./Conversation.ts"
import { parsed, type SeenBody, transcript } from "./GeneratedModel.ts"
import { random } from "./Random.ts"

const sessionID = SessionID.make("ses_recorded")

/** Events that change earlier messages: a checkpoint, pruned or restored results, another model. */
const rewrites = ["compaction.ended", "context.pruned", "model.switched", "baseline"]

/** The agent's or family's text and the baseline; updates may follow them in `system`. */
const leading = ({ system }: SeenBody) => system.slice(0, 2)

const all = ({ messages, system }: SeenBody) => [...system, ...messages]

/** A sample of the turns: every turn around a compaction or pruning of `around`, and the others evenly. */
const sampled = (steps: ReadonlyArray<Step>, count: number): ReadonlyArray<number> => {
  const special = steps.flatMap(({ between }, at) => (rewrites.some((type) => between.has(type)) ? [at - 1, at] : []))
  const every = Math.max(1, Math.floor(steps.length / count))
  const even = steps.flatMap((_, at) => (at % every === 0 ? [at] : []))
  const thinned = special.filter((_, index) => index % Math.max(1, Math.ceil(special.length / count)) === 0)
  return [...new Set([0, steps.length - 1, ...even, ...thinned])].filter((at) => at >= 0).sort((a, b) => a - b)
}

/** Every turn's earlier messages equal those of the turn before, byte for byte, unless an event is meant to change them. */
const keepsPrefixes = ({ transcript: { seen } }: Conversation, steps: ReadonlyArray<Step>) => {
  let kept = 0
  for (const [at, step] of steps.entries()) {
    const [before, after] = [seen[at - 1], seen[at]]
    if (before === undefined || after === undefined) continue
    const [earlier, later] = [parsed(before.body), parsed(after.body)]
    if (!step.between.has("baseline") && !step.between.has("agent.switched")) {
      assert.deepEqual(leading(later), leading(earlier), `EP-6: the system texts of turn ${at} changed`)
    }
    if (rewrites.some((type) => step.between.has(type)) || step.between.has("agent.switched")) continue
    kept += 1
    const [was, is] = [all(earlier), all(later)]
    assert.deepEqual(is.slice(0, was.length), was, `turn ${at} changed what turn ${at - 1} was shown`)
  }
  return kept
}

export interface Outcome {
  readonly turns: number
  readonly compactions: number
  readonly prunings: number
  readonly compared: number
  readonly previews: number
}

/** Runs the conversation, then computes its requests again in a new runtime on the same file. */
export const holds = Effect.fn(function* (
  folder: string,
  turns: number,
  options: { readonly seed: number; readonly sample: number }
) {
  const conversation = yield* converse(folder, sessionID, turns, options.seed)
  const {
    previews,
    transcript: { seen }
  } = conversation
  const runtime = yield* open(conversation.filename, random(0), transcript())
  return yield* Effect.gen(function* () {
    const steps = yield* stepsOf(sessionID)
    assert.strictEqual(steps.length, seen.length, "each request that went out is one step")
    const sessions = yield* Sessions
    const sample = sampled(steps, options.sample)
    for (const at of sample) {
      const shown = yield* sessions.request({ sessionID, at: steps[at]?.seq ?? -1 })
      assert.strictEqual(shown.model.id, seen[at]?.model)
      assert.deepEqual(parsed(bodyOf(shown)), parsed(seen[at]?.body ?? ""), `turn ${at} is not shown as it was`)
    }
    const kept = keepsPrefixes(conversation, steps)
    assert.isAbove(kept, steps.length / 4)
    let previewed = 0
    for (const { body, next } of previews) {
      const between = steps[next]?.between
      // A preview reports a pending compaction and does not perform it.
      if (between === undefined || between.has("compaction.ended") || between.has("context.pruned")) continue
      previewed += 1
      assert.deepEqual(parsed(body), parsed(seen[next]?.body ?? ""), `the preview of turn ${next}`)
    }
    const count = (type: string) => steps.filter(({ between }) => between.has(type)).length
    return {
      turns: steps.length,
      compactions: count("compaction.ended"),
      prunings: count("context.pruned"),
      compared: sample.length,
      previews: previewed
    } satisfies Outcome
  }).pipe(Effect.provide(runtime))
})
