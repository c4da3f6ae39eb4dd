/**
 * The contents that a pack keeps by name: texts and definitions that lie nowhere else, media, and long results that were
 * shown more than once. Pure. Spec: FI-50..FI-52 in specs/files.md (PK-5).
 */
import { estimate } from "@daybook/core"
import { Predicate } from "effect"
import { blobsOf, type Blobs, type Referred } from "./Blobs.ts"
import { messagesSource, messageText, toolsText, type Encoded, type Pack, type ShownMessage } from "./Pack.ts"

const packSource = "pack.json"

/** Results from this many bytes on are worth a name of their own, if they were shown twice. */
const longResult = 1_024

type Part = Exclude<Encoded["content"], string>[number]

export const partsOf = ({ content }: Encoded): ReadonlyArray<Part> => (Predicate.isString(content) ? [] : content)

const tokensOf = (message: Encoded): number => estimate({ system: [], tools: [], messages: [message] }).total

/** Bytes of a file that went with a request; a URL has none. */
export const mediaBytes = (data: Extract<Part, { readonly type: "file" }>["data"]): Uint8Array | undefined =>
  Predicate.isString(data) ? Buffer.from(data, "base64") : data instanceof URL ? undefined : data

const refOf = ({ lines }: ShownMessage, call?: string): string => {
  const line = lines.find((line) => call === undefined || line.call === call) ?? lines[0]
  return line === undefined ? packSource : `${messagesSource}:${line.line}`
}

/** The line of the call whose result brought the media: those follow the results, in the order of the calls. */
const mediaOf = (one: ShownMessage): ReadonlyArray<Referred> =>
  one.shown.flatMap(partsOf).flatMap((part) => {
    const content = part.type === "file" ? mediaBytes(part.data) : undefined
    return part.type !== "file" || content === undefined
      ? []
      : [{ content, tokens: tokensOf({ role: "user", content: [part] }), ref: refOf(one) }]
  })

const resultsOf = (one: ShownMessage): ReadonlyArray<Referred> =>
  one.shown.flatMap((message) =>
    message.role !== "tool"
      ? []
      : message.content.flatMap(({ id, result }) =>
          Predicate.isString(result) && Buffer.byteLength(result) >= longResult
            ? [{ content: result, tokens: Math.round(result.length / 4), ref: refOf(one, id) }]
            : []
        )
  )

const repeated = (results: ReadonlyArray<Referred>): ReadonlyArray<Referred> => {
  const times = new Map<string | Uint8Array, number>()
  for (const { content } of results) times.set(content, (times.get(content) ?? 0) + 1)
  return results.filter(({ content }) => (times.get(content) ?? 0) > 1)
}

/** Everything of a pack that is kept by the name of its content. */
export const packBlobs = ({ estimate, messages, sent: { frame } }: Pack): Blobs =>
  blobsOf([
    ...frame.system.map((content, nth) => ({ content, tokens: estimate.perSystem[nth] ?? 0, ref: packSource })),
    ...(frame.tools.length === 0 ? [] : [{ content: toolsText(frame.tools), tokens: estimate.tools, ref: packSource }]),
    ...messages.flatMap((one) =>
      one.lines.length === 0 && one.message.type !== "compaction"
        ? [{ content: messageText(one), tokens: one.tokens, ref: packSource }]
        : []
    ),
    ...messages.flatMap(mediaOf),
    ...repeated(messages.flatMap(resultsOf))
  ])
