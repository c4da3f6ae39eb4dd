/**
 * Reads and asks for the person's trust decision about the project that a command works in.
 * Spec: CL-160..CL-165 in specs/cli.md, specs/trust.md.
 */
import { homedir } from "node:os"
import { join } from "node:path"
import { Context, Effect } from "effect"
import * as TrustStore from "@daybook/core/trust/TrustStore"
import * as Configuration from "../config/Configuration.ts"
import { changesText, ignoredText, questionText } from "../render/TrustText.ts"
import { dataFolder } from "../support/Paths.ts"
import { Output } from "../terminal/Output.ts"
import * as Question from "../terminal/Question.ts"

/** Whether the command was given `--trust`. */
export class Everything extends Context.Reference<Everything>()("@daybook/cli/TrustEverything", {
  defaultValue: (): boolean => false
}) {}

/** The store of decisions, with the folders that the configuration trusts and `--trust`. */
export const storeOf = ({ trust }: Pick<Configuration.Configured, "trust">) =>
  Effect.map(Everything, (everything) =>
    TrustStore.make({
      folder: join(dataFolder(process.env, homedir()), "trust"),
      folders: trust?.folders,
      everything
    })
  )

/** The store of decisions, with the person's configuration. */
export const store = Effect.flatMap(Configuration.load, storeOf)

/** Projects that this process has asked about or noted. */
const settled = new Set<string>()

/**
 * Asks once about the project of a folder if it is unknown and a person is at the terminal. Without a terminal a note says
 * that the project's files have no effect.
 */
export const settle = Effect.fn("Trusting.settle")(function* (directory: string) {
  const decisions = yield* store
  const report = yield* decisions.report(directory)
  const { root, standing } = report
  if (standing.state === "trusted" || settled.has(root)) return
  settled.add(root)
  const output = yield* Output
  if (standing.state === "unknown" && Question.canAsk()) {
    const shown = `${questionText(report)}${changesText(report)}`
    const answer = yield* Question.together(Question.line({ shown, prompt: "[t]rust it, or [n]ot now: " }))
    if (answer !== undefined) {
      const trusts = ["t", "trust"].includes(answer.trim().toLowerCase())
      return yield* decisions.decide(report, trusts ? "trusted" : "restricted")
    }
  }
  // A clone without texts needs no note: the refusal of a command says why.
  if (report.brings.every(({ kind }) => kind === "clone")) return
  yield* output.note(ignoredText(report))
})
