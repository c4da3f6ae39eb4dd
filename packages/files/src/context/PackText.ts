/** Renders the pack for people: everything that the model was shown, in order. Pure. Spec: FI-48 in specs/files.md. */
import { Predicate } from "effect"
import { hashOf } from "./Blobs.ts"
import { mediaBytes, partsOf } from "./PackBlobs.ts"
import type { Encoded, Pack, ShownMessage } from "./Pack.ts"

type Part = ReturnType<typeof partsOf>[number]

const section = (heading: string, body: string): string => `## ${heading}\n\n${body}\n`

const json = (value: unknown): string => `\`\`\`json\n${JSON.stringify(value, null, 2)}\n\`\`\``

const media = (part: Extract<Part, { readonly type: "file" }>): string => {
  const bytes = mediaBytes(part.data)
  const name = part.fileName ?? "file"
  return bytes === undefined
    ? `[${name}, ${part.mediaType}, at ${String(part.data)}]`
    : `[${name}, ${part.mediaType}, ${bytes.length} bytes, ${hashOf(bytes)}]`
}

const partText = (part: Part): string => {
  switch (part.type) {
    case "text":
      return part.text
    case "reasoning":
      return `(reasoning) ${part.text}`
    case "file":
      return media(part)
    case "tool-call":
      return `call of ${part.name} (${part.id})\n\n${json(part.params)}`
    case "tool-result":
      return (
        `${part.isFailure ? "failure" : "result"} of ${part.name} (${part.id})\n\n` +
        (Predicate.isString(part.result) ? part.result : json(part.result))
      )
  }
}

const body = (message: Encoded): string =>
  Predicate.isString(message.content) ? message.content : partsOf(message).map(partText).join("\n\n")

const messageSections = ({ lines, message, shown, tokens }: ShownMessage): ReadonlyArray<string> => {
  const at = lines.length === 0 ? "" : `, line ${lines.map(({ line }) => line).join(", ")}`
  return shown.map((one, nth) =>
    section(`${one.role} (${message.id}${nth === 0 ? `, ${tokens} tokens` : ""}${at})`, body(one))
  )
}

/** The text of `pack.md`. */
export const packText = (session: string, { budget, estimate, messages, sent }: Pack): string => {
  const { agent, frame, model, step } = sent
  const head = [
    "# What the model was shown\n",
    `- session: ${session}`,
    `- agent: ${agent}`,
    `- model: ${model.providerID}/${model.id}`,
    `- step: event ${step.seq}, ${step.messageID}`,
    `- tokens, estimated: ${estimate.total} of ${budget}`,
    ...(Object.keys(frame.settings).length === 0 ? [] : [`- settings: ${JSON.stringify(frame.settings)}`])
  ].join("\n")
  return [
    `${head}\n`,
    ...frame.system.map((text, nth) => section(`system ${nth + 1} (${estimate.perSystem[nth] ?? 0} tokens)`, text)),
    ...frame.tools.map(({ description, name, parameters }, nth) =>
      section(
        `tool ${name} (${estimate.perTool[nth] ?? 0} tokens)`,
        `${description === undefined ? "" : `${description}\n\n`}${json(parameters)}`
      )
    ),
    ...messages.flatMap(messageSections)
  ].join("\n")
}
