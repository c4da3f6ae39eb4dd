/** Kills a real process with SIGKILL during a turn, and keeps its database. */
import { fork } from "node:child_process"
import { join } from "node:path"
import { Effect } from "effect"
import type { SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import type { PromptInput } from "../../../packages/log/src/domain/Values.ts"
import { program } from "../../support/Program.ts"

/** The child's prompt and steer; the steer waits when the child dies. */
export interface Asked {
  readonly prompt: PromptInput
  readonly steer?: PromptInput
}

/** Runs the child until its tool runs and the steer waits, then kills it. */
export const crash = Effect.fnUntraced(function* (
  folder: string,
  filename: string,
  id: SessionID,
  asked: Asked = { prompt: { text: "go" } }
) {
  const outfile = yield* program(join(import.meta.dirname, "crashChild.ts"))
  yield* Effect.async<void>((resume) => {
    const child = fork(outfile, [filename, folder, id, JSON.stringify(asked)], { stdio: "inherit", execArgv: [] })
    child.once("message", () => child.kill("SIGKILL"))
    child.once("exit", (_, signal) => resume(signal === "SIGKILL" ? Effect.void : Effect.dieMessage("it ended itself")))
  })
})
