/** Reads the attachments of a message for its prompt, within limits. Spec: DI-35 in specs/discord.md. */
import * as HttpClient from "@effect/platform/HttpClient"
import { Effect, Stream } from "effect"
import type { PromptInput } from "@daybook/log/domain/Values"
import { line } from "../text/Publishable.ts"
import type { Attachment } from "../wire/Packets.ts"

type File = NonNullable<PromptInput["files"]>[number]

export const mostFiles = 10
/** Bytes of one attachment. */
export const mostBytes = 8 * 1_024 * 1_024
/** Bytes of all of them: as text in a prompt they must stay below its limit (IB-31). */
export const mostTogether = 20 * 1_024 * 1_024

/** An attachment, or why it is missing. */
export type Read = { readonly file: File } | { readonly missing: string }

const mimeOf = ({ content_type: type }: Attachment): string =>
  /^[\w.+-]+\/[\w.+-]+/.exec(type ?? "")?.[0] ?? "application/octet-stream"

const bytesOf = (http: HttpClient.HttpClient, { url }: Attachment) =>
  http.get(url).pipe(
    Effect.flatMap((response) =>
      response.status !== 200
        ? Effect.fail(`Discord answered with ${response.status}`)
        : Stream.runFoldEffect(response.stream, { parts: [] as Array<Uint8Array>, size: 0 }, ({ parts, size }, part) =>
            size + part.length > mostBytes
              ? Effect.fail("it is larger than it says")
              : Effect.succeed({ parts: [...parts, part], size: size + part.length })
          )
    ),
    Effect.map(({ parts }) => Buffer.concat(parts)),
    Effect.timeoutFail({ duration: "30 seconds", onTimeout: () => "it did not come within 30 seconds" }),
    Effect.mapError((error) => (typeof error === "string" ? error : "it could not be downloaded"))
  )

/** The attachments in order. The prompt names those that are missing. */
export const read = (
  attachments: ReadonlyArray<Attachment>
): Effect.Effect<ReadonlyArray<Read>, never, HttpClient.HttpClient> =>
  Effect.gen(function* () {
    const http = yield* HttpClient.HttpClient
    const results: Array<Read> = []
    let together = 0
    for (const [index, attachment] of attachments.entries()) {
      const name = line(attachment.filename, 120)
      const missing = (why: string) => void results.push({ missing: `attachment ${name}: ${why}` })
      if (index >= mostFiles) {
        missing(`more than ${mostFiles} attachments`)
        continue
      }
      if (attachment.size > mostBytes || together + attachment.size > mostTogether) {
        missing("it is too large")
        continue
      }
      const bytes = yield* Effect.either(bytesOf(http, attachment))
      if (bytes._tag === "Left") {
        missing(bytes.left)
        continue
      }
      together += bytes.right.length
      const mime = mimeOf(attachment)
      results.push({ file: { uri: `data:${mime};base64,${bytes.right.toString("base64")}`, mime, name } })
    }
    return results
  })
