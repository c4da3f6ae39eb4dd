/** Renders the context files of every step of a stored session, as an exporter would have written them after that step. */
import { createHash } from "node:crypto"
import { Effect, Stream } from "effect"
import { type ContextFiles, contextFiles } from "../../../../packages/files/src/context/ContextFiles.ts"
import { contextInput } from "../../../../packages/files/src/render/SessionContext.ts"
import type { PackState } from "../../../../packages/files/src/context/PackState.ts"
import { linesFrom, readerOf } from "../../../../packages/files/src/render/Pieces.ts"
import * as Rendering from "../../../../packages/files/src/render/Rendering.ts"
import type { SessionID } from "../../../../packages/log/src/domain/Identifiers.ts"
import { EventLog } from "../../../../packages/log/src/log/EventLog.ts"
import { eventsOf } from "../../../runner/support/Runs.ts"

export interface Context {
  /** The step's event. */
  readonly seq: number
  readonly files: ContextFiles
  /** `messages.jsonl` after the step. */
  readonly messages: Buffer
  readonly state: PackState
}

export const sha256 = (content: string | Uint8Array): string => createHash("sha256").update(content).digest("hex")

/** The files of a rendering with these bytes as `messages.jsonl`. */
export const filesOf = (sessionID: SessionID, rendering: Rendering.Rendering, messages: Uint8Array) =>
  Effect.map(
    contextInput({
      sessionID,
      session: "default",
      state: rendering.pack,
      digest: (at, bytes) => Effect.succeed(sha256(messages.subarray(at, at + bytes)))
    }),
    ({ input, state }) => ({ state, files: input === undefined ? undefined : contextFiles(input) })
  )

/** The results of `each` for every step's files, in order. */
export const contextsOf = Effect.fn(function* <A, E, R>(
  sessionID: SessionID,
  each: (context: Context) => Effect.Effect<A, E, R>
) {
  const made: Array<A> = []
  const written: Array<Buffer> = []
  let rendering = Rendering.initial
  for (const event of yield* eventsOf(sessionID)) {
    const next = Rendering.evolveAll(rendering, [event])
    const lines = linesFrom(next.added.messages, readerOf(yield* EventLog, sessionID))
    yield* Stream.runForEach(lines.bytes, (bytes) => Effect.sync(() => written.push(Buffer.from(bytes))))
    rendering = next.rendering
    if (event.type !== "session.next.step.started") continue
    const messages = Buffer.concat(written)
    const { files, state } = yield* filesOf(sessionID, rendering, messages)
    rendering = { ...rendering, pack: state }
    if (files !== undefined) made.push(yield* each({ seq: event.seq, files, messages, state }))
  }
  return { made, rendering, messages: Buffer.concat(written) }
})

/** The rows of a JSONL file; none if it does not exist. */
export const rowsOf = (files: ContextFiles, path: string): ReadonlyArray<Record<string, unknown>> =>
  String(files.get(path) ?? "")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line))
