/** The verbs of live shells that are one call to a running host; they start no host. Spec: SL-185, SL-186. */
import { Effect } from "effect"
import * as OutputStore from "@daybook/shell/output/OutputStore"
import { jsonLine, oneLine } from "../render/Plain.ts"
import { NotFound } from "../support/Errors.ts"
import { Output } from "../terminal/Output.ts"
import { Remote, type Server } from "./Remote.ts"
import { checkpointTable, restoredText, shellTable, unrecordedNote } from "./ShellExec.ts"
import { existing } from "./ShellHostWork.ts"
import * as ShellsHost from "./ShellsHost.ts"

/** Bytes of a page. */
const limit = 1_048_576

export const run = Effect.fn("Command.shell.output")(function* (given: {
  readonly handle: string
  readonly stderr: boolean
  readonly json: boolean
}) {
  const { handle, json, stderr } = given
  const output = yield* Output
  const settings = yield* ShellsHost.outputs
  if (settings === undefined) return yield* new OutputStore.OutputNotFound({ handle })
  const store = OutputStore.make(settings)
  let offset: number | undefined = 0
  while (offset !== undefined) {
    const page: OutputStore.OutputPage = yield* store.page(handle, stderr ? "stderr" : "stdout", offset, limit)
    yield* output.write(json ? `${jsonLine(page, output.terminal)}\n` : page.text)
    offset = page.next
  }
})

/** The open shells; none without a host. */
export const open = Effect.flatMap(existing, (host) => host.list).pipe(
  Effect.catchTag("HostAbsent", () => Effect.succeed([])),
  Effect.scoped
)

const openOver = (server: Server) =>
  Effect.flatMap(
    Effect.promise(() => import("./RemoteHost.ts")),
    ({ shells }) => shells(server)
  )

const writeLines = Effect.fnUntraced(function* (values: ReadonlyArray<unknown>) {
  const output = yield* Output
  yield* output.write(values.map((value) => `${jsonLine(value, output.terminal)}\n`).join(""))
})

export const list = Effect.fn("Command.shell.list")(function* ({ json }: { readonly json: boolean }) {
  const output = yield* Output
  const server = yield* Remote
  const shells = yield* server === undefined ? open : openOver(server)
  if (json) return yield* writeLines(shells)
  yield* output.write(shellTable(shells))
})

export const destroy = Effect.fn("Command.shell.destroy")(function* (options: {
  readonly ids: ReadonlyArray<string>
  readonly all: boolean
  readonly json: boolean
}) {
  const output = yield* Output
  if (options.all && (yield* open).length === 0) return
  const host = yield* existing
  const ids = options.all ? (yield* host.list).map(({ session_id: id }) => id) : [...new Set(options.ids)]
  const results = yield* Effect.forEach(
    ids,
    (id) => Effect.map(host.destroy(id), (destroyed) => ({ session_id: id, destroyed })),
    { concurrency: "unbounded" }
  )
  if (options.json) yield* writeLines(results)
  else {
    const closed = results.filter(({ destroyed }) => destroyed)
    yield* output.note(closed.map(({ session_id: id }) => `${oneLine(id)} is closed\n`).join(""))
  }
  const missing = results.find(({ destroyed }) => !destroyed)
  if (missing !== undefined && !options.all) {
    return yield* new NotFound({ message: `there is no open shell ${oneLine(missing.session_id)}` })
  }
}, Effect.scoped)

export const checkpoint = Effect.fn("Command.shell.checkpoint")(function* (options: {
  readonly id: string
  readonly label: string | undefined
  readonly json: boolean
}) {
  const output = yield* Output
  const made = yield* (yield* existing).checkpoint(options.id, options.label)
  yield* options.json ? writeLines([made]) : output.write(`${made.checkpoint_id}\n`)
  if (!options.json) yield* output.note(unrecordedNote("the checkpoint was made", made))
}, Effect.scoped)

export const checkpoints = Effect.fn("Command.shell.checkpoints")(function* (options: {
  readonly id: string
  readonly json: boolean
}) {
  const output = yield* Output
  const kept = yield* (yield* existing).checkpoints(options.id)
  yield* options.json ? writeLines(kept) : output.write(checkpointTable(kept))
}, Effect.scoped)

export const restore = Effect.fn("Command.shell.restore")(function* (options: {
  readonly id: string
  readonly checkpointID: string | undefined
  readonly json: boolean
}) {
  const output = yield* Output
  const restored = yield* (yield* existing).restore(options.id, options.checkpointID)
  yield* options.json ? writeLines([restored]) : output.write(restoredText(restored))
  if (!options.json) yield* output.note(unrecordedNote("the files were restored", restored))
}, Effect.scoped)
