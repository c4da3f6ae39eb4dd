/**
 * Whether the person trusts the project that a command works in: the decisions of the person, and the question that makes
 * one. Spec: CL-160..CL-165 in specs/cli.md, specs/trust.md.
 */
import { TrustStore } from "@daybook/core"
import { Context, Effect } from "effect"
import { homedir } from "node:os"
import { join } from "node:path"
import * as Configuration from "./Configuration.ts"
import { Output } from "./Output.ts"
import { dataFolder } from "./Paths.ts"
import * as Question from "./Question.ts"
import { oneLine } from "./render/Plain.ts"
import { changesText, questionText } from "./render/TrustText.ts"

/** Whether the command was given `--trust`. */
export class Everything extends Context.Reference<Everything>()("@daybook/cli/TrustEverything", {
  defaultValue: (): boolean => false
}) {}

/** The person's decisions, with what the configuration trusts and what this command was told. */
export const storeOf = ({ trust }: Pick<Configuration.Configured, "trust">) =>
  Effect.map(Everything, (everything) =>
    TrustStore.make({
      folder: join(dataFolder(process.env, homedir()), "trust"),
      folders: trust?.folders,
      everything
    })
  )

/** The same with the configuration of the person. */
export const store = Effect.flatMap(Configuration.load, storeOf)

/** Projects that were asked about in this process, or noted. */
const settled = new Set<string>()

/**
 * Asks about the project of a folder once, where it is unknown and a person is there. Elsewhere a note says that what it
 * brings does not count.
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
  // Of a clone that brings no texts nothing is left out: a refused command says why.
  if (report.brings.every(({ kind }) => kind === "clone")) return
  yield* output.note(
    `what the project in ${oneLine(root, 400)} brings does not count: ${standing.why}; daybook trust shows it\n`
  )
})
