/** Prints whole outputs of live shells from disk: they outlive the host. Spec: SL-186 in specs/shell.md. */
import { Effect } from "effect"
import * as OutputStore from "@daybook/shell/output/OutputStore"
import { jsonLine } from "../render/Plain.ts"
import { Output } from "../terminal/Output.ts"
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
