/** Sessions with real tools in a real folder, driven by a scripted model. */
import { mkdirSync, realpathSync } from "node:fs"
import { join } from "node:path"
import { it } from "@effect/vitest"
import { Effect } from "effect"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import type { SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import { answerTo, runtime, temporaryFolder } from "../../support/Harness.ts"
import { callParts, calls, ScriptedModel } from "../../support/ScriptedModel.ts"
import { project, write } from "./Repository.ts"

const permissions = [{ permission: "*", resource: "*", verdict: "allow" as const }]

/** A repository and a runtime on a file beside it. */
export const suite = <E>(
  title: string,
  files: Readonly<Record<string, string>> | undefined,
  body: (work: string) => Effect.Effect<void, E, Sessions | EventLog | ScriptedModel>,
  options: Parameters<typeof runtime>[0] = {}
) =>
  it.scopedLive(title, () =>
    Effect.gen(function* () {
      const base = realpathSync(yield* temporaryFolder)
      const work = join(base, "work")
      mkdirSync(join(base, "data"))
      if (files === undefined) write(work, { "a.txt": "1" })
      else project(work, files)
      const agents = [{ name: "free", permissions }]
      yield* Effect.provide(body(work), runtime({ filename: join(base, "data", "log.sqlite"), agents, ...options }))
    })
  )

export const session = (work: string) =>
  Effect.flatMap(Sessions, (sessions) => sessions.create({ location: { directory: work }, agent: "free" }))

/** Sends a prompt that calls these tools in one turn, then ends with an answer. */
export const work = Effect.fnUntraced(function* (
  sessionID: SessionID,
  prompt: string,
  ...called: ReadonlyArray<readonly [name: string, input: unknown]>
) {
  const model = yield* ScriptedModel
  if (called.length > 0) {
    yield* model.answer(calls(...called.map(([name, input], at) => callParts(`c${at}`, name, input))))
  }
  yield* answerTo(sessionID, prompt, "done")
})

export const sh = (command: string) => ["bash", { command, description: "works" }] as const
export const put = (path: string, content: string) => ["write", { path, content }] as const

/** What turns of a session changed, as events. */
export const changesOf = (sessionID: SessionID) =>
  Effect.map(
    Effect.flatMap(EventLog, (log) => log.read({ sessionID })),
    ({ events }) => events.flatMap((event) => (event.type === "session.next.files.changed" ? [event.data] : []))
  )
