/** `daybook remove`: deletes a session, its files and the outputs of its shells. Spec: CL-18, CL-206 in specs/cli.md, SL-64 in specs/shell.md. */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { Effect, Either } from "effect"
import { Sessions } from "@daybook/core/session/Sessions"
import { Exporter } from "@daybook/files/Exporter"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { EventLog } from "@daybook/log/log/EventLog"
import { removeSession } from "@daybook/shell/output/OutputStore"
import * as Flags from "../arguments/Flags.ts"
import * as SessionReference from "../arguments/SessionReference.ts"
import { verb } from "../arguments/Verb.ts"
import * as DatabasePath from "../config/DatabasePath.ts"
import * as PlaceStore from "../host/PlaceStore.ts"
import { rootOf, shared } from "../host/FilesHost.ts"
import { withSessions, sessionWord } from "../host/Runtime.ts"
import * as ShellsHost from "../host/ShellsHost.ts"
import { oneLine } from "../render/Plain.ts"
import * as Question from "../terminal/Question.ts"
import * as Logs from "../terminal/Logs.ts"
import { Output } from "../terminal/Output.ts"

/** Removes the whole outputs of commands that the session recorded, or reports those that are still there. */
const removeOutputs = Effect.fnUntraced(function* (sessionID: SessionID) {
  const output = yield* Output
  const settings = yield* ShellsHost.outputs
  if (settings === undefined) return
  const left = removeSession(settings.folder, sessionID)
  if (left.length > 0)
    yield* output.note(`outputs of the session are still there: ${left.map((path) => oneLine(path, 400)).join(", ")}\n`)
})

/** Removes the files of removed sessions below the configured root, or reports why they are still there. */
const removeFiles = Effect.fnUntraced(function* (place: DatabasePath.Place) {
  const output = yield* Output
  const root = yield* rootOf(undefined)
  // Without the exporter's record no file there is Daybook's.
  if (!existsSync(join(root, ".daybook"))) return
  const where = oneLine(root, 400)
  yield* Effect.flatMap(shared, (shared) => Exporter.removeFiles({ root, shared })).pipe(
    Effect.provide(PlaceStore.layer(place)),
    Effect.provide(Logs.warnings),
    Effect.catchTags({
      RootOfAnotherStore: () => Effect.void,
      RootBusy: () => output.note(`another process keeps the files at ${where}, and removes those of the session\n`)
    }),
    Effect.catchAll((error) =>
      output.note(
        `the session's files at ${where} may still be there: ${oneLine(error.message, 400)}; ` +
          "daybook files export removes them\n"
      )
    )
  )
})

/** The session's id if the log has removed it: a command that was killed may have left its files. */
const removedBefore = Effect.fnUntraced(function* (reference: string) {
  const log = yield* EventLog
  for (let page = yield* log.removals(); page.length > 0; page = yield* log.removals({ after: page.at(-1)?.number })) {
    for (const { sessionID } of page) if (sessionID === reference) return sessionID
  }
  return undefined
})

const runRemove = Effect.fn("Command.remove")(function* (reference: string, sure: boolean) {
  const sessions = yield* Sessions
  const found = yield* Effect.either(SessionReference.exactly(reference))
  if (Either.isLeft(found)) {
    const removed = found.left._tag === "SessionNotFound" ? yield* removedBefore(reference) : undefined
    if (removed === undefined) return yield* found.left
    yield* (yield* Output).note(`${removed} was removed before; removing what is left of its files\n`)
    return removed
  }
  const session = found.right
  if (!sure) {
    const name = session.title === undefined ? session.id : `${session.id} "${oneLine(session.title, 60)}"`
    yield* Question.confirm(`Remove ${name} with all its events?`, {
      unasked: `removing ${session.id} cannot be undone; give --yes to confirm without a terminal`,
      declined: `${session.id} was kept`
    })
  }
  yield* sessions.remove(session.id)
  return session.id
})

export const remove = verb({
  name: "remove",
  summary: "delete a session and everything that belongs to it",
  words: "SESSION",
  details: [
    "It asks first. A running session is interrupted. This cannot be undone.",
    "Its files at DAYBOOK_ROOT, else ctx beside the database, are removed too: by daybook serve if it runs there, else " +
      "by this command. Files at other roots go with the next daybook files export --root DIR. Changed files stay there " +
      "under a name that contains .aside. Outputs of its live shells are removed. Backups and archives keep the session: delete them yourself."
  ],
  given: { session: sessionWord, yes: Flags.toggle("yes", "do not ask") },
  examples: [["daybook remove ses_01JD --yes", "deletes it without asking"]],
  overServer: true,
  run: (given) =>
    Effect.gen(function* () {
      const sessionID = yield* withSessions(runRemove(given.session, given.yes))
      yield* removeOutputs(sessionID)
      yield* removeFiles(yield* DatabasePath.existing)
    })
})
