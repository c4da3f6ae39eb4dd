/** `daybook trust`: shows whether a project is trusted, and decides it. Spec: CL-163..CL-165. */
import { Effect } from "effect"
import type * as TrustStore from "@daybook/core/trust/TrustStore"
import * as Flags from "../arguments/Flags.ts"
import * as Folder from "../arguments/Folder.ts"
import { verb } from "../arguments/Verb.ts"
import { didYouMean } from "../support/Nearest.ts"
import { oneLine } from "../render/Plain.ts"
import { UsageError } from "../support/Errors.ts"
import { Output, writeJson } from "../terminal/Output.ts"

const verbs = ["status", "grant", "revoke"] as const
type Deed = (typeof verbs)[number]

const isDeed = (word: string | undefined): word is Deed => verbs.some((verb) => verb === word)

/** The report as JSON, without the contents of files. */
const json = ({ brings, changes, root, standing }: TrustStore.Report) => {
  const plain = ({ hash, kind, path }: TrustStore.Report["brings"][number]) => ({ path, kind, hash })
  const { state, why } = standing
  return {
    folder: root,
    state,
    why,
    brings: brings.map(plain),
    ...(changes === undefined
      ? {}
      : {
          changes: {
            added: changes.added.map(({ path }) => path),
            removed: changes.removed.map(({ path }) => path),
            changed: changes.changed.map(({ now }) => now.path)
          }
        })
  }
}

const run = Effect.fn("Command.trust")(function* (words: ReadonlyArray<string>, asJson: boolean) {
  const output = yield* Output
  const Trusting = yield* Effect.promise(() => import("../host/Trusting.ts"))
  const { changesText, statusText } = Trusting
  const [first, ...rest] = words
  const [deed, given, ...more] = isDeed(first) ? [first, ...rest] : (["status", first, ...rest] as const)
  // A misspelt deed is read as a folder.
  const meant = isDeed(first) ? "" : didYouMean(first ?? "", verbs)
  if (more.length > 0) {
    return yield* new UsageError({
      message: `daybook trust takes one folder: "${oneLine(more.join(" "), 80)}" is too many${meant}`
    })
  }
  const directory = yield* Effect.mapError(
    Folder.given(given, "FOLDER"),
    ({ message }) => new UsageError({ message: `${message}${meant}` })
  )
  const store = yield* Trusting.store
  const before = yield* store.report(directory)
  const show = (report: TrustStore.Report) => (asJson ? writeJson(json(report)) : output.write(statusText(report)))
  if (deed === "status") {
    yield* show(before)
    if (!asJson && before.changes !== undefined) yield* output.write(changesText(before))
    return
  }
  yield* store.decide(before, deed === "grant" ? "trusted" : "restricted")
  const after = yield* store.report(directory)
  yield* show(after)
  const wanted = deed === "grant" ? "trusted" : "restricted"
  if (after.standing.state !== wanted) {
    return yield* new UsageError({ message: `the project is ${after.standing.state}: ${after.standing.why}` })
  }
})

export const trust = verb({
  name: "trust",
  summary: "show what a project brings, and decide whether to trust it",
  words: "[status|grant|revoke] [FOLDER]",
  details: [
    "A project may bring instructions (AGENTS.md, CLAUDE.md), agents, templates and skills (.daybook), or be a clone of " +
      "someone else's repository. Until you trust the project of FOLDER (default: the current one), it is restricted: the " +
      "model gets the names of instruction files but not their text, MCP servers with a cwd there do not start, and commands " +
      "and changes that saved approvals or your own rules allow ask first. If the files change, you are asked again.",
    "A folder of your own that brings nothing needs no decision. On a terminal, prompt asks once about other projects. " +
      "Elsewhere they stay restricted, unless --trust is given or the configuration lists them: " +
      "trust: { folders: [~/work/**] }. Decisions are stored in the data folder and hold for this folder only, not for " +
      "another folder at the same path."
  ],
  given: { words: Flags.many("WORD"), json: Flags.json },
  examples: [
    ["daybook trust", "shows the state of the current folder's project, and what it brings"],
    ["daybook trust grant ~/work/site", "trusts the project in its present state"],
    ["daybook trust revoke", "withdraws the trust"]
  ],
  run: ({ json, words }) => run(words, json)
})
