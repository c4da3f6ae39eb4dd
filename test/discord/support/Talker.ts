/**
 * A model whose answers follow from the prompt alone, so that a test knows what must be published: a prompt `ask 7 long` gets
 * the answer 7, of numbered lines in paragraphs and a block of code, streamed in pieces.
 */
import { LanguageModel, type Prompt, type Response } from "@effect/ai"
import { Effect, Layer, Stream } from "effect"
import { layerLanguageModel, type ModelResolver } from "../../../packages/core/src/model/ModelResolver.ts"

/** How long an answer is, and whether a question, a tool, or a tool that needs a permission comes first. */
export const kinds = ["short", "long", "asks", "reads", "writes"] as const
export type Kind = (typeof kinds)[number]

const asking = new RegExp(`ask (\\d+) (${kinds.join("|")})`, "g")

export const promptOf = (number: number, kind: Kind): string => `ask ${number} ${kind}`

const words = "The quick brown fox jumps over the lazy dog, and no event is lost or repeated."

const lineOf = (number: number, count: number) => (_: unknown, index: number) =>
  `«${number}.${index + 1}/${count}» ${words}`

/** The lines of an answer. */
export const linesOf = (number: number, kind: Kind): ReadonlyArray<string> => {
  const count = kind === "long" ? 40 + (number % 30) : 1 + (number % 3)
  return Array.from({ length: count }, lineOf(number, count))
}

/** The answer: paragraphs of five lines, every third one a block of code. */
export const answerOf = (number: number, kind: Kind): string => {
  const lines = linesOf(number, kind)
  const paragraphs = Array.from({ length: Math.ceil(lines.length / 5) }, (_, index) =>
    lines.slice(index * 5, index * 5 + 5).join("\n")
  )
  return paragraphs.map((text, index) => (index % 3 === 2 ? `\`\`\`text\n${text}\n\`\`\`` : text)).join("\n\n")
}

const textOf = ({ content }: Prompt.Message): string =>
  typeof content === "string" ? content : content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("")

const isAnswer = ({ content, role }: Prompt.Message) =>
  role === "assistant" && content.some((part) => typeof part !== "string" && part.type === "text")

/** What was asked since the last answer, and the calls since then. Prompts that steer are answered together. */
const openIn = ({ content }: Prompt.Prompt) => {
  const since = content.slice(content.findLastIndex(isAnswer) + 1)
  const asked = since.flatMap((message) => (message.role === "user" ? [...textOf(message).matchAll(asking)] : []))
  const calls = since.flatMap((message) =>
    message.role === "assistant" ? message.content.flatMap((part) => (part.type === "tool-call" ? [part.id] : [])) : []
  )
  return {
    asked: asked.map(([, number, kind]) => ({
      number: Number(number),
      kind: kinds.find((one) => one === kind) ?? "short"
    })),
    calls: new Set(calls)
  }
}

const call = (number: number, name: string, params: unknown): ReadonlyArray<Response.StreamPartEncoded> => [
  { type: "tool-call", id: `call_${number}`, name, params, providerExecuted: false }
]

const finish = (reason: Response.FinishReason): Response.StreamPartEncoded => ({
  type: "finish",
  reason,
  usage: { inputTokens: 10, outputTokens: 5, totalTokens: 15 }
})

/** The question that an answer of the kind `asks` begins with. */
export const question = "Which one?"

const callingKinds: ReadonlyArray<Kind> = ["asks", "reads", "writes"]

const parts = (prompt: Prompt.Prompt): ReadonlyArray<Response.StreamPartEncoded> => {
  const { asked, calls } = openIn(prompt)
  const next = asked.find(({ kind, number }) => callingKinds.includes(kind) && !calls.has(`call_${number}`))
  if (next?.kind === "asks") {
    const questions = [{ question, options: [{ label: "one" }, { label: "two" }] }]
    return [...call(next.number, "question", { questions }), finish("tool-calls")]
  }
  if (next?.kind === "writes") {
    const params = { path: `notes-${next.number}.txt`, content: "noted" }
    return [...call(next.number, "write", params), finish("tool-calls")]
  }
  if (next?.kind === "reads") return [...call(next.number, "read", { path: "notes.txt" }), finish("tool-calls")]
  const text = asked.map(({ kind, number }) => answerOf(number, kind)).join("\n\n")
  const pieces = text.match(/[^]{1,400}/g) ?? ["nothing was asked"]
  return [
    { type: "text-start", id: "t" },
    ...pieces.map((delta) => ({ type: "text-delta" as const, id: "t", delta })),
    { type: "text-end", id: "t" },
    finish("stop")
  ]
}

/** The model; each piece takes the given time. */
export const layer = (millis: number): Layer.Layer<ModelResolver> =>
  layerLanguageModel({ ref: { providerID: "test", id: "talker" }, canName: false }).pipe(
    Layer.provide(
      Layer.effect(
        LanguageModel.LanguageModel,
        LanguageModel.make({
          generateText: () => Effect.dieMessage("the runner streams"),
          streamText: ({ prompt }) =>
            Stream.fromIterable(parts(prompt)).pipe(
              Stream.rechunk(1),
              millis === 0 ? (stream) => stream : Stream.tap(() => Effect.sleep(millis))
            )
        })
      )
    )
  )
