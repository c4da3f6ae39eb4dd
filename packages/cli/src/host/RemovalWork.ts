/** Removes the files of a session that `daybook remove` removed. Spec: CL-206, SL-64 in specs/shell.md. */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { Exporter } from "@daybook/files/Exporter"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import * as Store from "@daybook/log/Store"
import { removeSession } from "@daybook/shell/output/OutputStore"
import { oneLine } from "../render/Plain.ts"
import { Output } from "../terminal/Output.ts"
import * as Warnings from "../terminal/Warnings.ts"
import { rootOf, shared } from "./FilesHost.ts"
import * as ShellsHost from "./ShellsHost.ts"

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
const removeFiles = Effect.fnUntraced(function* (filename: string) {
  const output = yield* Output
  const root = yield* rootOf(undefined)
  // Without the exporter's record no file there is Daybook's.
  if (!existsSync(join(root, ".daybook"))) return
  const place = oneLine(root, 400)
  yield* Effect.flatMap(shared, (shared) => Exporter.removeFiles({ root, shared })).pipe(
    Effect.provide(Store.layer({ filename })),
    Effect.provide(Warnings.layer),
    Effect.catchTags({
      RootOfAnotherStore: () => Effect.void,
      RootBusy: () => output.note(`another process keeps the files at ${place}, and removes those of the session\n`)
    }),
    Effect.catchAll((error) =>
      output.note(
        `the session's files at ${place} may still be there: ${oneLine(error.message, 400)}; ` +
          "daybook files export removes them\n"
      )
    )
  )
})

export const run = Effect.fn("Command.remove.files")((filename: string, sessionID: SessionID) =>
  Effect.zipRight(removeOutputs(sessionID), removeFiles(filename))
)
