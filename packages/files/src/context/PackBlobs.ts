/**
 * Selects the blobs of a pack: texts and definitions that are stored nowhere else, media, and long results that were
 * shown more than once. Pure. Spec: FI-50..FI-52 in specs/files.md (PK-5).
 */
import { Predicate } from "effect"
import { estimate } from "@daybook/core/request/TokenEstimate"
import { type Blobs, blobsOf, type Referred } from "./Blobs.ts"
import { type Encoded, messagesSource, messageText, type Pack, type ShownMessage, toolsText } from "./Pack.ts"

const packSource = "pack.json"

/** The size in bytes from which a result that was shown twice becomes a blob. */
const longResult = 1_024

type Part = Exclude<Encoded["content"], string>[number]

export const partsOf = ({ content }: Encoded): ReadonlyArray<Part> => (Predicate.isString(content) ? [] : content)

const tokensOf = (message: Encoded): number => estimate({ system: [], tools: [], messages: [message] }).total

/** The bytes of a file that was sent with a request; undefined for a URL. */
export const mediaBytes = (data: Extract<Part, { readonly type: "file" }>["data"]): Uint8Array | undefined =>
  Predicate.isString(data) ? Buffer.from(data, "base64") : data instanceof URL ? undefined : data

const refOf = ({ lines }: ShownMessage, call?: string): string => {
  const line = lines.find((line) => call === undefined || line.call === call) ?? lines[0]
  return line === undefined ? packSource : `${messagesSource}:${line.line}`
}

/** The message's media, each with the line of the call that returned it. Media follow the results, in call order. */
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

/** All blobs of a pack. */
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
