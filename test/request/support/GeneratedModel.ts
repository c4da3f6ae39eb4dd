/**
 * A LanguageModel that generates answers from a seed and records every request. It is a real `@effect/ai` model, so it receives
 * the same requests as a provider's adapter. Requests for a summary are recognised by their form and recorded separately.
 */
import { LanguageModel, Prompt, type Response, Tool } from "@effect/ai"
import { Effect, Layer, Predicate, Schema, Stream } from "effect"
import { type ModelInfo, ModelNotFound, ModelResolver } from "../../../packages/core/src/model/ModelResolver.ts"
import type { FramedTool } from "../../../packages/core/src/request/RequestFrame.ts"
import type { Random } from "./Random.ts"

/** A request as the model received it: as JSON, so that later changes of the objects do not matter. */
export interface Seen {
  readonly model: string
  /** JSON of a `SeenBody`. */
  readonly body: string
}

export interface SeenBody {
  readonly system: ReadonlyArray<unknown>
  readonly messages: ReadonlyArray<unknown>
  readonly tools: ReadonlyArray<FramedTool>
}

/** A prompt in its encoded form, with the library's additions. */
export const encoded = (prompt: Prompt.RawInput): ReadonlyArray<Prompt.MessageEncoded> =>
  Schema.encodeSync(Prompt.Prompt)(Prompt.make(prompt)).content

const shapes = new WeakMap<Tool.Any, FramedTool>()

const shape = (tool: Tool.Any): FramedTool => {
  const before = shapes.get(tool)
  if (before !== undefined) return before
  const made: FramedTool = {
    name: tool.name,
    ...(tool.description === undefined ? {} : { description: tool.description }),
    parameters: { ...Tool.getJsonSchemaFromSchemaAst(tool.parametersSchema.ast) }
  }
  shapes.set(tool, made)
  return made
}

/** System texts, messages and tools, as JSON. */
export const bodyOf = (prompt: Prompt.RawInput, tools: ReadonlyArray<FramedTool>): string => {
  const all = encoded(prompt)
  const first = all.findIndex(({ role }) => role !== "system")
  const cut = first === -1 ? all.length : first
  return JSON.stringify({ system: all.slice(0, cut), messages: all.slice(cut), tools } satisfies SeenBody)
}

/** The body of a request that a model received. */
export const seenBody = ({
  prompt,
  tools
}: {
  readonly prompt: Prompt.Prompt
  readonly tools: ReadonlyArray<Tool.Any>
}) => bodyOf(prompt, tools.map(shape))

/** A summary in the requested form. */
export const summary = (nth: number): string =>
  [
    `## Goal\nTo look around, for the ${nth}. time`,
    "## Constraints & Preferences\n(none)",
    "## Progress",
    "### Done\n- [x] Looked",
    "### In Progress\n- [ ] Looking",
    "### Blocked\n(none)",
    "## Key Decisions\n(none)",
    "## Next Steps\n1. Look again",
    "## Critical Context\n(none)",
    "## Relevant Files\n(none)"
  ].join("\n\n")

const finish = (reason: Response.FinishReason): Response.StreamPartEncoded => ({
  type: "finish",
  reason,
  usage: { inputTokens: 10, outputTokens: 5, totalTokens: 15 }
})

const text = (id: string, delta: string): ReadonlyArray<Response.StreamPartEncoded> => [
  { type: "text-start", id },
  { type: "text-delta", id, delta },
  { type: "text-end", id }
]

/** Reasoning with a signature, which is sent back only to the same model. */
const thought = (id: string): ReadonlyArray<Response.StreamPartEncoded> => [
  { type: "reasoning-start", id },
  { type: "reasoning-delta", id, delta: `I think of ${id}` },
  { type: "reasoning-end", id, metadata: { scripted: { signature: `sig-${id}` } } }
]

const call = (id: string, params: Record<string, unknown>): ReadonlyArray<Response.StreamPartEncoded> => [
  { type: "tool-params-start", id, name: "look", providerExecuted: false },
  { type: "tool-params-delta", id, delta: JSON.stringify(params) },
  { type: "tool-params-end", id },
  { type: "tool-call", id, name: "look", params, providerExecuted: false }
]

/** An answer with some text, reasoning, and zero or more parallel calls. */
const answer = (nth: number, random: Random): ReadonlyArray<Response.StreamPartEncoded> => {
  const calls = random.chance(0.6) ? random.below(3) + 1 : 0
  return [
    ...(random.chance(0.3) ? thought(`r${nth}`) : []),
    ...(calls === 0 || random.chance(0.4) ? text("t", `Answer ${nth}: ${random.words(random.below(60) + 1)}`) : []),
    ...Array.from({ length: calls }, (_, index) =>
      call(`call_${nth}_${index}`, {
        size: random.below(900) + 1,
        media: random.chance(0.05),
        fail: random.chance(0.05)
      })
    ).flat(),
    finish(calls === 0 ? "stop" : "tool-calls")
  ]
}

export const provider = "scripted"
export const models = ["one", "two"] as const

/** The requests to a test's models, over all its runtimes. */
export interface Transcript {
  readonly seen: Array<Seen>
  readonly summaries: Array<Seen>
}

export const transcript = (): Transcript => ({ seen: [], summaries: [] })

const isSummary = ({ content }: Prompt.Prompt, tools: ReadonlyArray<Tool.Any>): boolean =>
  tools.length === 0 && content[0]?.role === "user" && JSON.stringify(content[0]).includes("Use exactly this form")

/** The resolver with two generated models that share one seed. `two` takes system messages anywhere. */
export const layer = (random: Random, { seen, summaries }: Transcript, info: Partial<ModelInfo> = {}) =>
  Layer.sync(ModelResolver, () => {
    const make = (model: string) =>
      LanguageModel.make({
        generateText: () => Effect.dieMessage("the runner streams"),
        streamText: ({ prompt, tools }) =>
          Stream.unwrap(
            Effect.sync(() => {
              const request: Seen = { model, body: seenBody({ prompt, tools }) }
              if (isSummary(prompt, tools)) {
                summaries.push(request)
                return Stream.fromIterable([...text("s", summary(summaries.length)), finish("stop")])
              }
              seen.push(request)
              return Stream.fromIterable(answer(seen.length, random))
            })
          )
      })
    return ModelResolver.of({
      resolve: ({ id, providerID } = { providerID: provider, id: "one" }) =>
        models.some((known) => known === id)
          ? Effect.map(make(id), (model) => ({
              info: {
                ref: { providerID, id },
                name: id,
                contextTokens: 0,
                outputTokens: 0,
                ...(id === "two" ? { systemMessages: "anywhere" as const } : {}),
                ...info
              },
              policy: {},
              model
            }))
          : new ModelNotFound({ providerID, modelID: id, known: [...models] })
    })
  })

export const parsed = (body: string): SeenBody => {
  const value: unknown = JSON.parse(body)
  if (!Predicate.hasProperty(value, "system")) throw new Error("no request")
  // `bodyOf` wrote it.
  return value as unknown as SeenBody
}
