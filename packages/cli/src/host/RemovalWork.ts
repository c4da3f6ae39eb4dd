/** Removes the files of sessions that `daybook remove` removed. Loaded only where session files are. Spec: CL-206. */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { Exporter } from "@daybook/files/Exporter"
import * as Store from "@daybook/log/Store"
import { oneLine } from "../render/Plain.ts"
import { Output } from "../terminal/Output.ts"
import * as Warnings from "../terminal/Warnings.ts"
import { rootOf, shared } from "./FilesHost.ts"

/** Removes the files of removed sessions below the configured root, or reports why they are still there. */
export const run = Effect.fn("Command.remove.files")(function* (filename: string) {
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
