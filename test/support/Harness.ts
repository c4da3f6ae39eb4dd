/** Builds the whole runtime around a scripted model, for tests from the facade down. */
import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Layer } from "effect"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import * as Daybook from "../../packages/embedded/src/Daybook.ts"
import { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import type { Session } from "../../packages/log/src/domain/Message.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { giveFileTo } from "./Owners.ts"
import * as ScriptedModel from "./ScriptedModel.ts"

/** The runtime on a database, with a scripted model. */
export const runtime = (
  options: Partial<Daybook.Options> = {},
  model: Parameters<typeof ScriptedModel.layer>[0] = {}
) => Daybook.layer({ filename: ":memory:", ...options }).pipe(Layer.provideMerge(ScriptedModel.layer(model)))

/** A folder that is removed with the scope. */
export const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "daybook-test-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

/** A new session in a folder. */
export const newSession = (directory: string = tmpdir()): Effect.Effect<Session, never, Sessions> =>
  Effect.orDie(Effect.flatMap(Sessions, (sessions) => sessions.create({ location: { directory } })))

/** A new session in a folder, and the services that a test of it asks. */
export const scene = Effect.fnUntraced(function* (directory?: string) {
  const [log, model, sessions] = [yield* EventLog, yield* ScriptedModel.ScriptedModel, yield* Sessions]
  return { ...(yield* newSession(directory)), log, model, sessions }
})

/** Admits a text. */
export const say = (
  sessionID: SessionID,
  text: string,
  options: { readonly delivery?: "steer" | "queue"; readonly resume?: boolean; readonly id?: string } = {}
) => Effect.flatMap(Sessions, (sessions) => sessions.prompt({ sessionID, prompt: { text }, ...options }))

/** Answers a prompt with a text, and waits until the session's work is done. */
export const answerTo = Effect.fnUntraced(function* (sessionID: SessionID, text: string, answer: string) {
  yield* (yield* ScriptedModel.ScriptedModel).answer(ScriptedModel.says(answer))
  yield* say(sessionID, text)
  yield* (yield* Sessions).wait(sessionID)
})

/** Answers a prompt with a text, and returns the request when the session's work is done. */
export const exchange = (sessionID: SessionID, text: string, answer: string) =>
  Effect.zipRight(
    answerTo(sessionID, text, answer),
    Effect.flatMap(ScriptedModel.ScriptedModel, (model) => model.request)
  )

/** The services of the runtime of `open`. */
export type Opened = Layer.Layer.Success<ReturnType<typeof runtime>>

/** The runtime on a file, until the scope closes. Opening one file twice simulates two processes. */
export const open = (options: Partial<Daybook.Options> = {}, model: Parameters<typeof ScriptedModel.layer>[0] = {}) =>
  Layer.build(Layer.fresh(runtime(options, model)))

/** Ways to build the runtime: the contracts of the facade are functions of them. */
export interface Runtimes {
  readonly runtime: typeof runtime
  readonly open: typeof open
  /** Copies a database as the death of its process leaves it. Default: the file. */
  readonly leave?: typeof leaveFile
  /** Replaces the owners in a database that no process has open. Default: in a file. */
  readonly give?: typeof giveFileTo
}

/** Copies a file as the death of its process leaves it. */
export const leaveFile = (filename: string, copy: string): Effect.Effect<void> =>
  Effect.sync(() => {
    for (const suffix of ["", "-wal"]) {
      if (existsSync(filename + suffix)) copyFileSync(filename + suffix, copy + suffix)
    }
  })

/** All user texts of a request, in order. */
export const allUserTexts = ({ prompt }: Pick<ScriptedModel.SeenRequest, "prompt">): ReadonlyArray<string> =>
  prompt.content.flatMap((message) =>
    message.role === "user" ? message.content.flatMap((part) => (part.type === "text" ? [part.text] : [])) : []
  )

/** The user texts of a request without reminders, in order. */
export const userTexts = (request: Pick<ScriptedModel.SeenRequest, "prompt">): ReadonlyArray<string> =>
  allUserTexts(request).filter((text) => !text.startsWith("<reminder>"))

/** The types of a session's durable events, in order. */
export const eventTypes = (sessionID: SessionID) =>
  Effect.map(
    Effect.flatMap(EventLog, (log) => log.read({ sessionID })),
    ({ events }) => events.map(({ type }) => type as string)
  )
